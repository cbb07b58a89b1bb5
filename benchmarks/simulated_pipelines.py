"""What a pipeline wins in the simulator: `python -m benchmarks.simulated_pipelines`.

Training steps in one piece and as eight microbatches, on equal GPUs of one host and of several,
launches of kernels and tensors included: what placers find, over the best of one device, which may
have as many microbatches as are best for it. It takes an hour, and goes on where it was stopped.
`--quick` is one small step. Writes `results/simulated_pipelines.json` and `.md`.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import RESULTS, command_line, save, table
from placeto import ComputationGraph, PlacementProblem, load_cluster, load_graph, simulate
from placeto.bounds import lower_bound
from placeto.extraction import extract
from placeto.placers import NotApplicable, place
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
    "rnnlm": "zoo:rnnlm",  # the papers'
    "nmt": "zoo:nmt",
}
QUICK = {"encoder": "benchmarks.models:encoder?depth=2&batch=8"}
CLUSTERS = ("k80x4", "v100x8-nvlink", "p3.8xlarge-2")
METHODS = ("single", "expert", "scotch", "heft", "stages", "auto")
MICROBATCHES = 8
SECONDS = 10.0


def in_microbatches(source: str, count: int) -> str:
    """The source of the step in so many microbatches."""
    return f"{source}{'&' if '?' in source else '?'}microbatches={count}"


def graph_of(source: str, path: Path) -> ComputationGraph:
    """The graph of a source, extracted once."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        extract(source).save(path)
    return load_graph(path)


def placed(graph: ComputationGraph, cluster: str, seconds: float) -> dict[str, Any]:
    """By method the step time in seconds, and whether it fits; what `auto` found in full."""
    problem = ordered(PlacementProblem(graph, load_cluster(cluster)))
    rows: dict[str, Any] = {}
    for method in METHODS:
        with suppress(NotApplicable):
            found = place(problem, method, seconds)
            rows[method] = {"step_time": found.step_time, "fits": found.feasible}
    schedule = simulate(found.problem, found.devices)
    return {
        "order": str(problem.order), "ops": graph.num_ops, "rows": rows,
        "lower_bound": lower_bound(problem), "bubble": bubble_share(found.problem, schedule),
        "devices": len(np.unique(found.devices)),
    }  # fmt: skip


def ratio(steps: dict[str, Any], method: str) -> float | None:
    """Of the step in microbatches, over the best single device's; None if it does not fit."""
    single = min(step["rows"]["single"]["step_time"] for step in steps.values())
    row = steps[str(MICROBATCHES)]["rows"].get(method)
    return row["step_time"] / single if row and row["fits"] else None


def markdown(found: dict[str, dict[str, Any]]) -> str:
    """A row a step and cluster."""
    methods = METHODS[1:]
    rows = []
    for name, clusters in found.items():
        for cluster, steps in clusters.items():
            last, whole = steps[str(MICROBATCHES)], steps["1"]["rows"]
            singles = min(step["rows"]["single"]["step_time"] for step in steps.values())
            ratios = (ratio(steps, method) for method in methods)
            rows.append([
                f"`{name}`", f"`{cluster}`", f"{1e3 * singles:.0f}",
                f"{whole['auto']['step_time'] / singles:.2f}",
                *("-" if each is None else f"{each:.2f}" for each in ratios),
                f"{last['lower_bound'] / singles:.2f}", str(last["devices"]),
                f"{last['bubble']:.0%}", f"`{last['order']}`",
            ])  # fmt: skip
    header = ["step", "cluster", "one device, ms", "`auto`, M = 1"]
    header += [f"`{method}`" for method in methods]
    return table([*header, "bound", "devices", "bubble", "order"], rows)


def main() -> None:
    """Runs the study, and writes what there is."""
    parser = command_line("simulated_pipelines", "a small step; results into `build`")
    parser.add_argument("--models", nargs="+", choices=SOURCES, help="only these")
    wanted = parser.parse_args()
    quick = wanted.quick
    folder = Path("build") / f"simulated-pipelines{'-quick' * quick}"
    sources, seconds = (QUICK, 1.0) if quick else (SOURCES, SECONDS)
    if wanted.models:
        sources = {name: SOURCES[name] for name in wanted.models}
    kept = folder / "found.json"
    found: dict[str, dict[str, Any]] = read_json(kept) if kept.exists() else {}
    for name, source in sources.items():
        for count in (1, MICROBATCHES):
            path = folder / f"{name}_{count}.json.gz"
            for cluster in CLUSTERS:
                steps = found.setdefault(name, {}).setdefault(cluster, {})
                if str(count) not in steps:
                    print(f"{name}, {count} microbatches, {cluster}", file=sys.stderr, flush=True)
                    graph = graph_of(in_microbatches(source, count), path)
                    steps[str(count)] = placed(graph, cluster, seconds)
                    write_json(kept, found)
    found = {name: found[name] for name in sources}
    if wanted.models and not quick:
        before = read_json(RESULTS / "simulated_pipelines.json")
        found = before["found"] | found
        sources = {name: source for name, source in SOURCES.items() if name in found}
    document = {"seconds": seconds, "sources": sources, "found": found}
    save("simulated_pipelines", document, markdown(found), folder if quick else RESULTS)


if __name__ == "__main__":
    main()
