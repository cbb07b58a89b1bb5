"""What `place --measure` ends with, for real: `python -m benchmarks.loop`.

Of each training step of `benchmarks.fidelity`, which comes first: searches and runs take turns, and
what they keep is run once more, in turn with both single devices, with what the same search finds
without any run, and with the fastest placements of that study. It takes half an hour, and goes on
where it was stopped; `--quick` is the quick study's step. Writes `results/loop.json` and `.md`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fidelity
from benchmarks.measuring import Study, devices_of
from benchmarks.output import RESULTS, command_line, save, table_of
from placeto import place
from placeto.heuristics.initial import single_devices
from placeto.measurement import Effort, Runtime
from placeto.measurement.calibration.machine import machine
from placeto.placers.measured import place_measured
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json, write_json

METHOD, SECONDS, RUNS = "auto", 30.0, 20
FASTEST = 4  # of the study's, that are run again
EFFORT = Effort(warm_up=2, steps=21, patience_seconds=10.0)
KEPT, ALONE = "kept", "without runs"


def measure(study: Study, name: str, graph: dict[str, Any], runs: int) -> dict[str, Any]:
    """What is kept, and the samples of all that ran in turn in the end, by name."""
    case = study.case(name, "auto")
    problem, singles = case.problem, single_devices(case.problem)
    with Runtime(problem.cluster) as runtime:
        found = place_measured(problem, runtime, case.runnable, METHOD, SECONDS, runs=runs)
        ran = fidelity.ran(graph)
        others = ran[ran["family"] != "single device"].sort_values("measured")
        rows = {row["label"]: row for row in graph["rows"]}
        many = {KEPT: found.placement.devices, ALONE: place(problem, METHOD, SECONDS).devices}
        many |= {label: devices_of(rows[label]) for label in others["label"][:FASTEST]}
        placed = np.stack([*singles, *many.values()])
        measured = runtime.compare(problem, placed, case.runnable, EFFORT)
    if reason := measured[0].reason:
        raise PlacetoError(f"{name}: cannot be run: {reason}")
    samples = [list(each.samples) for each in measured]
    return {
        "runs": sum(len(each.runs) + each.failures for each in found.candidates),
        "seconds": found.placement.wall_seconds, "noise": found.noise, "stopped": found.stopped,
        "beside": samples[: len(singles)],
        "samples": dict(zip(many, samples[len(singles) :], strict=True)),
    }  # fmt: skip


def ratios(row: dict[str, Any]) -> dict[str, float]:
    """By name, the median over turns of step times over the mean of both single devices."""
    one = np.mean(row["beside"], axis=0)
    return {name: float(np.median(np.array(each) / one)) for name, each in row["samples"].items()}


def better_single(row: dict[str, Any]) -> float:
    """The same of the better single device."""
    beside = np.array(row["beside"])
    return float(np.median(beside / beside.mean(axis=0), axis=1).min())


def regret(row: dict[str, Any], name: str) -> float:
    """How much slower a placement is than the fastest of all that ran beside it."""
    found = ratios(row)
    return found[name] / min(better_single(row), *found.values()) - 1


def judged_apart(row: dict[str, Any], name: str) -> float:
    """The same, with the fastest chosen by every other turn and judged by the rest, in the mean.

    The fastest of several is partly the luckiest; in turns that did not choose it, it is not.
    """
    turns = np.concatenate([row["beside"], list(row["samples"].values())])
    turns = turns / np.mean(row["beside"], axis=0)
    own = len(row["beside"]) + list(row["samples"]).index(name)
    found = []
    for half in (0, 1):
        fastest = np.median(turns[:, half::2], axis=1).argmin()
        others = np.median(turns[:, 1 - half :: 2], axis=1)
        found.append(others[own] / others[fastest] - 1)
    return float(np.mean(found))


REGRETS = {
    "regret": (regret, KEPT), "judged apart": (judged_apart, KEPT),
    "without": (regret, ALONE), "without, apart": (judged_apart, ALONE),
}  # fmt: skip


def markdown(found: dict[str, Any]) -> str:
    """A row a step, and the means."""
    rows = []
    for name, row in found.items():
        each = ratios(row)
        # fmt: off
        rows.append({
            "step": f"`{name}`", "runs": str(row["runs"]), "took": f"{row['seconds']:.0f} s",
            "better worker": f"{better_single(row):.2f}", "kept": f"{each[KEPT]:.2f}",
            "without runs": f"{each[ALONE]:.2f}", "fastest": f"{min(each.values()):.2f}",
        } | {label: f"{of(row, each):.1%}" for label, (of, each) in REGRETS.items()})
        # fmt: on
    means = {label: np.mean([of(row, each) for row in found.values()])
             for label, (of, each) in REGRETS.items()}  # fmt: skip
    blank = dict.fromkeys(rows[0], "")
    rows.append(blank | {"step": "mean"} | {key: f"{value:.1%}" for key, value in means.items()})
    return table_of(rows)


def main() -> None:
    """Runs what was not run yet, and writes what there is."""
    parser = command_line("loop", "the quick study's step; results into its folder")
    parser.add_argument("--folder", type=Path, help="of the study of fidelity")
    parser.add_argument("--steps", nargs="+", choices=fidelity.BATCHES, help="only these")
    wanted = parser.parse_args()
    quick = wanted.quick
    folder = wanted.folder or Path("build") / f"fidelity{'-quick' * quick}"
    results = folder if quick else RESULTS
    study = Study("fidelity", fidelity.QUICK if quick else fidelity.FULL, folder, results)
    graphs = read_json(results / "fidelity.json")["graphs"]
    kept = folder / "loop.json"
    found: dict[str, Any] = read_json(kept) if kept.exists() else {}
    names = [name for name in graphs if name in (wanted.steps or graphs)]
    for name in names:
        if name not in found:
            print(f"{name}: search and runs", file=sys.stderr, flush=True)
            found[name] = measure(study, name, graphs[name], RUNS // 4 if quick else RUNS)
            write_json(kept, found)
    found = {name: found[name] for name in names}
    document = {"machine": machine(), "method": METHOD, "seconds": SECONDS, "steps": found}
    save("loop", document, markdown(found), results)


if __name__ == "__main__":
    main()
