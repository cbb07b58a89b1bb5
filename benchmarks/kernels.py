"""What kernels take in a placement, beside those of whole steps: `python -m benchmarks.kernels`.

Of each training step of `benchmarks.fidelity`, which comes first, what version 2 of the simulator
holds for fastest is traced, and so are steps that run whole on both workers at once. Kernels are
told apart by whether their own worker sends or receives meanwhile, and whether the other one
computes. It takes five minutes on a quiet machine. Writes `results/kernels.json` and `.md`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fidelity
from benchmarks.measuring import Study, devices_of
from benchmarks.output import RESULTS, command_line, machine, save, table_of
from placeto.heuristics.initial import single_devices
from placeto.measurement import Effort, Runtime
from placeto.measurement.trace import OpRun, Trace, read_trace
from placeto.support.arrays import Floats, Ints
from placeto.support.files import read_json

EFFORT = Effort(warm_up=2, steps=9, patience_seconds=5.0)
TRACES = 10
LEAST_SECONDS = 20e-6  # of a kernel that is looked at
KINDS = ("both compute", "it alone computes", "and it sends or receives", "alone, and likewise")
Spans = list[tuple[float, float]]


def joined(spans: Spans) -> Spans:
    """The spans without overlaps, in order."""
    found: Spans = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def covered(spans: Spans, begin: float, end: float) -> float:
    """The share of a time that spans without overlaps cover."""
    parts = (max(min(last, end) - max(first, begin), 0.0) for first, last in spans)
    return sum(parts) / max(end - begin, 1e-12)


def kinds(trace: Trace) -> list[tuple[OpRun, int]]:
    """Each run of an op on one of two devices, with which of `KINDS` it is."""
    numbers = range(2)
    busy = [joined([(r.begin, r.end) for r in trace.ops if r.device == n]) for n in numbers]
    carried = [
        joined([(t.begin, t.end) for t in trace.received if n in (t.source, t.destination)])
        for n in numbers
    ]
    found = []
    for run in trace.ops:
        alone = covered(busy[1 - run.device], run.begin, run.end) <= 0.5
        carries = covered(carried[run.device], run.begin, run.end) > 0.1
        found.append((run, 2 * carries + alone))
    return found


def totals(traces: Sequence[Trace], whole: Floats, numbers: dict[str, int]) -> list[list[float]]:
    """By kind, seconds of kernels, and of the same ones in whole steps, (2, num_ops) seconds."""
    found = [[0.0, 0.0] for _ in KINDS]
    for trace in traces:
        for run, kind in kinds(trace):
            believed = whole[run.device, numbers[run.op]] if run.op in numbers else np.nan
            if believed >= LEAST_SECONDS:
                found[kind][0] += run.seconds
                found[kind][1] += float(believed)
    return found


def fastest(rows: list[dict[str, Any]]) -> Ints:
    """Of what was searched in version 2, what that holds for the fastest."""
    found = [row for row in rows if row["family"] == "searched in version 2" and row["runs"]]
    return devices_of(min(found, key=lambda row: row["version 2"]))


def traced(study: Study, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Runs and traces both kinds of steps."""
    problem = fidelity.problem_of(study, name, 2)
    runnable = study.case(name, "auto").runnable
    devices, singles = fastest(rows), single_devices(problem)
    with Runtime(problem.cluster) as runtime:
        placed = [(problem, single, runnable) for single in singles]
        _, beside = runtime.at_once(placed, EFFORT, TRACES)
        [*_, split] = runtime.compare(
            problem, np.stack([*singles, devices]), runnable, EFFORT, traces=TRACES
        )
    names = [str(device) for device in problem.cluster.tensorflow_devices()]
    numbers = {op: number for number, op in enumerate(problem.graph.op_names)}
    whole = np.full((len(names), len(numbers)), np.nan)
    for device, measured in enumerate(beside):
        steps = np.zeros((len(measured.traces), len(numbers)))
        for step, data in zip(steps, measured.traces, strict=True):
            for run in read_trace(data, names[device : device + 1]).ops:
                if run.op in numbers:
                    step[numbers[run.op]] += run.seconds
        whole[device] = np.median(steps, axis=0)
    return {
        "kinds": totals([read_trace(data, names) for data in split.traces], whole, numbers),
        "devices": len(set(devices.tolist())),
    }


def markdown(found: dict[str, dict[str, Any]]) -> str:
    """A row a step: kernels over those of whole steps, and what share of their time which are."""
    rows = []
    for name, row in found.items():
        here, there = np.array(row["kinds"]).T
        cells = {
            kind: f"{a / b:.2f} ({b / there.sum():.0%})" if b > 0 else "-"
            for kind, a, b in zip(KINDS, here, there, strict=True)
        }
        rows.append({"step": f"`{name}`", "all": f"{here.sum() / there.sum():.2f}"} | cells)
    return table_of(rows)


def main() -> None:
    """Traces all steps, and writes what was found."""
    parser = command_line("kernels", "the quick study's step; results into its folder")
    parser.add_argument("--folder", type=Path, help="of the study of fidelity")
    wanted = parser.parse_args()
    quick = wanted.quick
    folder = wanted.folder or Path("build") / f"fidelity{'-quick' * quick}"
    results = folder if quick else RESULTS
    study = Study("fidelity", fidelity.QUICK if quick else fidelity.FULL, folder, results)
    found = {}
    for name, graph in read_json(results / "fidelity.json")["graphs"].items():
        print(f"{name}: traces", file=sys.stderr, flush=True)
        found[name] = traced(study, name, graph["rows"])
    save("kernels", {"machine": machine(), "steps": found}, markdown(found), results)


if __name__ == "__main__":
    main()
