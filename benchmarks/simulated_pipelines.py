"""What a pipeline wins in the simulator: `python -m benchmarks.simulated_pipelines`.

Training steps in one piece and as 2, 4 and 8 microbatches, on equal GPUs of one host and of two,
launches of kernels and tensors included: what cuts and placers find, over the best of one device,
which may have as many microbatches as are best for it. `auto` has seconds of the processor, not of
the wall clock, so that what else runs on the machine does not shorten its search. It takes an hour,
and goes on where it was stopped. `--quick` is one small step. Writes
`results/simulated_pipelines.json` and `.md`.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import RESULTS, command_line, save, table
from benchmarks.splits import even_cut
from placeto import ComputationGraph, PlacementProblem, load_cluster, load_graph, simulate
from placeto.bounds import lower_bound
from placeto.extraction import extract
from placeto.placers import NotApplicable, place
from placeto.placers.microbatches import MOST_OPS
from placeto.placers.ordering import ordered
from placeto.simulation.pipeline import bubble_share
from placeto.support.files import read_json, write_json

SOURCES = {
    "resnet50": "keras:ResNet50?batch=64",
    "vgg16": "keras:VGG16?batch=64",
    "inception_v3": "keras:InceptionV3?batch=64",
    "mobilenet_v2": "keras:MobileNetV2?batch=64",
    "encoder": "benchmarks.models:encoder?width=512&heads=8&depth=6&length=128&batch=64",
    "language": "benchmarks.models:language?hidden=1024&words=10000&batch=256",
    "rnnlm": "zoo:rnnlm",  # the papers', as Inception-V3 is
    "nmt": "zoo:nmt",
    "nasnet": "zoo:nasnet?batch=32",
}
QUICK = {"encoder": "benchmarks.models:encoder?depth=2&batch=8"}
CLUSTERS = ("k80x4", "v100x8-nvlink", "p3.8xlarge-2")
SINGLE, EVEN, AUTO = "single", "even cut", "auto"
METHODS = (SINGLE, "scotch", "heft", "stages", "expert", AUTO)  # the last one's pipeline is told
SHOWN = (EVEN, "stages", "expert", "scotch", "heft", AUTO)
MICROBATCHES = (1, 2, 4, 8)
CPU_SECONDS = 10.0
CHAINS = 2  # of the search, whatever the machine


def in_microbatches(source: str, count: int) -> str:
    """The source of the step in so many microbatches."""
    return f"{source}{'&' if '?' in source else '?'}microbatches={count}"


def graph_of(source: str, path: Path) -> ComputationGraph:
    """The graph of a source, extracted once."""
    if not path.exists():
        extract(source).save(path)
    return load_graph(path)


def placed(graph: ComputationGraph, cluster: str, cpu_seconds: float) -> dict[str, Any]:
    """By method the step time in seconds, and whether it fits; what `auto` found in full."""
    clock = time.process_time
    problem = ordered(PlacementProblem(graph, load_cluster(cluster)), clock)
    cut = simulate(problem, even_cut(problem))
    rows: dict[str, Any] = {EVEN: {"step_time": cut.step_time, "fits": cut.feasible}}
    for method in METHODS:
        settings = {"chains": CHAINS} if method == AUTO else None
        with suppress(NotApplicable):
            found = place(problem, method, cpu_seconds, settings=settings, clock=clock)
            rows[method] = {"step_time": found.step_time, "fits": found.feasible}
    schedule = simulate(found.problem, found.devices)
    return {
        "order": str(problem.order), "ops": graph.num_ops, "rows": rows,
        "evaluations": found.evaluations, "lower_bound": lower_bound(problem),
        "bubble": bubble_share(found.problem, schedule), "devices": len(np.unique(found.devices)),
    }  # fmt: skip


def too_large(steps: dict[str, Any], count: int) -> bool:
    """Whether so many microbatches would be more ops than are searched within seconds."""
    half = steps.get(str(count // 2))
    return count > 1 and (half is None or 2 * half["ops"] > MOST_OPS)


def best(steps: dict[str, Any], method: str) -> tuple[str, float] | None:
    """The microbatches with which what a method finds is fastest, and seconds; None if none fits.

    A single device counts whether or not it has the memory: it is what the others are held against.
    """
    each = {
        count: row["step_time"]
        for count, step in steps.items()
        if (row := step["rows"].get(method)) and (row["fits"] or method == SINGLE)
    }
    return min(each.items(), key=lambda of: of[1]) if each else None


def best_single(steps: dict[str, Any]) -> tuple[str, float]:
    """The microbatches with which one device is fastest, and seconds."""
    found = best(steps, SINGLE)
    assert found is not None
    return found


def markdown(found: dict[str, dict[str, Any]]) -> str:
    """A row a step and cluster, with the best number of microbatches; and `auto`'s with each."""
    header = ["step", "cluster", "one device, ms", *(f"`{name}`" for name in SHOWN)]
    header[header.index(f"`{EVEN}`")] = EVEN
    rows, counts = [], []
    for name, clusters in found.items():
        for cluster, steps in clusters.items():
            count, seconds = best_single(steps)
            cells = [f"`{name}`", f"`{cluster}`"]
            kinds = [_cell(best(steps, method), seconds) for method in SHOWN]
            fastest = best(steps, AUTO)
            told = [""] * 4
            if fastest is not None:
                step = steps[fastest[0]]
                bound = step["lower_bound"] / seconds
                told = [f"{bound:.2f}", str(step["devices"]), f"{step['bubble']:.0%}",
                        f"`{step['order']}`"]  # fmt: skip
            rows.append([*cells, f"{1e3 * seconds:.0f} ({count})", *kinds, *told])
            autos = [_ratio(steps, each, AUTO, seconds) for each in map(str, MICROBATCHES)]
            ops = max(step["ops"] for step in steps.values())
            counts.append([*cells, str(ops), *autos, *(
                _ratio(steps, each, SINGLE, seconds) for each in map(str, MICROBATCHES)
            )])  # fmt: skip
    first = table([*header, "bound", "devices", "bubble", "order"], rows)
    columns = [f"{what}, M = {count}" for what in ("`auto`", "one") for count in MICROBATCHES]
    return f"{first}\n{table(['step', 'cluster', 'ops', *columns], counts)}"


def _cell(of: tuple[str, float] | None, seconds: float) -> str:
    return "-" if of is None else f"{of[1] / seconds:.2f} ({of[0]})"


def _ratio(steps: dict[str, Any], count: str, method: str, seconds: float) -> str:
    """Of a method with so many microbatches, over some seconds; a dash if it does not fit."""
    of = best({count: steps[count]}, method) if count in steps else None
    return "-" if of is None else f"{of[1] / seconds:.2f}"


def main() -> None:
    """Runs the study, and writes what there is."""
    parser = command_line("simulated_pipelines", "a small step; results into `build`")
    parser.add_argument("--models", nargs="+", choices=SOURCES, help="only these")
    wanted = parser.parse_args()
    quick = wanted.quick
    folder = Path("build") / f"simulated-pipelines{'-quick' * quick}"
    sources, seconds = (QUICK, 1.0) if quick else (SOURCES, CPU_SECONDS)
    if wanted.models:
        sources = {name: SOURCES[name] for name in wanted.models}
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "found.json"
    found: dict[str, dict[str, Any]] = read_json(kept) if kept.exists() else {}
    for name, source in sources.items():
        for count in MICROBATCHES:
            path = folder / f"{name}_{count}.json.gz"
            for cluster in CLUSTERS:
                steps = found.setdefault(name, {}).setdefault(cluster, {})
                if str(count) not in steps and not too_large(steps, count):
                    print(f"{name}, {count} microbatches, {cluster}", file=sys.stderr, flush=True)
                    graph = graph_of(in_microbatches(source, count), path)
                    steps[str(count)] = placed(graph, cluster, seconds)
                    write_json(kept, found)
    found = {name: found[name] for name in sources}
    if wanted.models and not quick:
        before = read_json(RESULTS / "simulated_pipelines.json")
        found = before["found"] | found
        sources = {name: source for name, source in SOURCES.items() if name in found}
    document = {"cpu_seconds": seconds, "sources": sources, "found": found}
    save("simulated_pipelines", document, markdown(found), folder if quick else RESULTS)


if __name__ == "__main__":
    main()
