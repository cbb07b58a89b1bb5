"""Plans of PyTorch pipelines, executed: `python -m benchmarks.torch_pipelines`.

Six models, two processes on the CPU, a core and a thread each, connected by `gloo`. `placeto
calibrate --torch` measures a model's ops, with 2, 4 and 8 microbatches in turn, and the transfers.
By that plans are made; the one that is predicted to be fastest counts. Every split into two stages,
of as many microbatches, then runs in turn with all others, with the other plans, and with one
process, a step of each; and once more, for longer, the fastest few, the plans, the split with as
many layers in each stage, and what was best for one process. It takes an hour, and goes on where it
was stopped. Writes `results/torch_pipelines.json` and `.md`; `--quick` runs one model and a few
rounds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import RESULTS, command_line, save, table_of
from benchmarks.torch_pipelines.nets import MIDDLE, NETS, UNEVEN
from placeto import PlacementProblem, load_cluster, load_graph, plan_pipeline, save_cluster
from placeto.measurement.calibration.machine import machine
from placeto.measurement.pytorch.detect import detect_cluster
from placeto.placement.pipeline_plan import stage_units
from placeto.simulation.stages import run_stages, stages_of
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json, write_json

FOLDER = Path("build/torch-pipelines")
MICROBATCHES = (2, 4, 8)
ALONE = {f"one process, M = {count}": count for count in (1, *MICROBATCHES)}
ROUNDS, MORE_ROUNDS, FASTEST = 1, 11, 3
# No memory goes back to the system between two steps, in any of the processes; see `facts` of
# glibc's malloc in `placeto.measurement.tasks`.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(16 * 2**30),
}  # fmt: skip


def calibrated(net: str, folder: Path) -> None:
    """Calibrates a model with each number of microbatches."""
    source = f"benchmarks.torch_pipelines.nets:{net}?loss=crossentropy&microbatches="
    sources = [part for count in MICROBATCHES for part in ("--torch", f"{source}{count}")]
    box, own = folder / "box.yaml", folder / net
    python("-m", "placeto", "calibrate", *sources, "--cluster", str(box), "-o", str(own))


def planned(net: str, count: int, folder: Path) -> dict[str, Any]:
    """Plans a model of so many microbatches, with what splits shall take."""
    own = folder / net
    graph = load_graph(own / f"{net}-{count}.json.gz")
    cluster = load_cluster(own / "box-calibrated.yaml")
    plan, _ = plan_pipeline(graph, cluster)
    plan.save(own / f"plan-{count}.json")
    units = stage_units(graph)
    problem = PlacementProblem(graph, cluster, units.of_op, order=plan.schedule)
    predicted = {}
    for cut, start in enumerate(units.starts, 1):
        devices = (np.arange(problem.num_groups) >= cut).astype(np.int64)
        predicted[start] = run_stages(stages_of(problem, devices), plan.schedule).seconds
    return {
        "schedule": plan.schedule, "plan": list(plan.split_points), "batch": graph.batch,
        "step": plan.step_time, "single": plan.single_device_step_time, "predicted": predicted,
        "alone": problem.alone.tolist(),
    }  # fmt: skip


def measure(net: str, folder: Path, rounds: int, more: int) -> dict[str, Any]:
    """Calibrates a model and plans it, and runs all of its splits."""
    calibrated(net, folder)
    plans = {str(count): planned(net, count, folder) for count in MICROBATCHES}
    count = chosen(plans)
    every = {split_name(point, count): (point, count) for point in plans[count]["predicted"]}
    own = {
        split_name(point, other): (point, other)
        for other, plan in plans.items()
        for point in plan["plan"]
    }
    every |= own
    first = run(net, ALONE, every, rounds, folder)
    middle = {name: float(np.median(each)) for name, each in first.items()}
    alone = min(ALONE, key=middle.__getitem__)
    fastest = sorted(every, key=middle.__getitem__)[:FASTEST]
    kept = dict.fromkeys([*fastest, *own, split_name(MIDDLE[net], count)])
    again = {name: every[name] for name in kept}
    seconds = run(net, {alone: ALONE[alone]}, again, more, folder)
    return {"plans": plans, "first": first, "seconds": seconds}


def chosen(plans: dict[str, Any]) -> str:
    """The number of microbatches whose plan is predicted to be fastest."""
    return min(plans, key=lambda count: plans[count]["step"])


def split_name(point: str, count: str) -> str:
    """What a split with so many microbatches is called among the runs."""
    return f"{point}, M = {count}"


def run(
    net: str, alone: dict[str, int], splits: dict[str, tuple[str, str]], rounds: int, folder: Path
) -> dict[str, list[float]]:
    """Seconds of each round's step, of one process and of each split, by name."""
    given, output = folder / f"{net}-settings.json", folder / f"{net}-seconds.json"
    points = {
        name: [point, str(folder / net / f"plan-{count}.json")]
        for name, (point, count) in splits.items()
    }
    write_json(given, {
        "net": net, "alone": alone, "splits": points, "rounds": rounds, "output": str(output),
    })  # fmt: skip
    ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    python(*ranks, "-m", "benchmarks.torch_pipelines.rank", str(given))
    found: dict[str, list[float]] = read_json(output)
    return found


def python(*arguments: str) -> str:
    """Runs Python, and returns what it prints."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise PlacetoError(f"{' '.join(arguments[:3])} failed: {done.stderr[-2000:]}")
    return done.stdout


def figures(row: dict[str, Any], net: str) -> dict[str, float]:
    """What a model's row says, ratios as medians over rounds.

    `alone`, `even`, `plan` and `best` are seconds: of one process with the best number of
    microbatches, of the split in the middle, of the plan, and of the fastest split.
    """
    count = chosen(row["plans"])
    chosen_plan = row["plans"][count]
    seconds = {name: np.array(each) for name, each in row["seconds"].items()}
    middle = {name: float(np.median(each)) for name, each in seconds.items()}
    (alone,) = seconds.keys() & ALONE.keys()
    best = min(seconds.keys() - ALONE.keys(), key=middle.__getitem__)
    plan = split_name(chosen_plan["plan"][0], count) if chosen_plan["plan"] else alone
    even = split_name(MIDDLE[net], count)
    predicted = chosen_plan["step"]

    def times_as_fast(one: str, other: str) -> float:
        return float(np.median(seconds[other] / seconds[one]))

    return {
        "alone": middle[alone], "even": middle[even], "plan": middle[plan],
        "best": middle[best], "over even": times_as_fast(plan, even),
        "over alone": times_as_fast(plan, alone), "behind best": 1 / times_as_fast(plan, best) - 1,
        "predicted": predicted, "error": predicted / middle[plan] - 1,
    }  # fmt: skip


def markdown(found: dict[str, Any]) -> str:
    """A row a model, and the means."""
    every = {net: figures(row, net) for net, row in found.items()}
    rows = []
    for net, each in every.items():
        count = chosen(found[net]["plans"])
        plan = found[net]["plans"][count]
        milliseconds = {name: f"{1e3 * each[name]:.0f} ms" for name in ("alone", "even", "plan")}
        rows.append({
            "model": f"`{net}`", "batch": str(plan["batch"]), "M": count,
            "one process": milliseconds["alone"],
            "even": milliseconds["even"], "plan": milliseconds["plan"],
            "split at": ", ".join(f"`{point}`" for point in plan["plan"]) or "not",
            "best of all": f"{1e3 * each['best']:.0f} ms",
            "behind best": f"{each['behind best']:.1%}",
            "over even": f"{each['over even']:.2f}", "over one": f"{each['over alone']:.2f}",
            "predicted": f"{1e3 * each['predicted']:.0f} ms", "off by": f"{each['error']:+.1%}",
        })  # fmt: skip
    uneven = [each["over even"] for net, each in every.items() if net in UNEVEN]
    page = table_of(rows)
    if uneven:
        mean = float(np.exp(np.mean(np.log(uneven))))
        error = float(np.mean([abs(each["error"]) for each in every.values()]))
        page += (
            f"\nOver an even split, uneven models, geometric mean: {mean:.2f}. "
            f"Mean absolute error of the prediction: {error:.1%}.\n"
        )
    return page


def main() -> None:
    """Runs what was not run yet, and writes what there is."""
    parser = command_line("torch_pipelines", "one model, few rounds; results into its folder")
    parser.add_argument("--models", nargs="+", choices=NETS, help="only these")
    wanted = parser.parse_args()
    folder = FOLDER.with_name("torch-pipelines-quick") if wanted.quick else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    save_cluster(detect_cluster("box", processes=2), folder / "box.yaml")
    kept = folder / "measured.json"
    found: dict[str, Any] = read_json(kept) if kept.exists() else {}
    nets = wanted.models or (["widening_mlp"] if wanted.quick else list(NETS))
    for net in nets:
        if net not in found:
            print(f"{net}: calibration, plan, runs", file=sys.stderr, flush=True)
            rounds = (1, 3) if wanted.quick else (ROUNDS, MORE_ROUNDS)
            found[net] = measure(net, folder, *rounds)
            write_json(kept, found)
    found = {net: found[net] for net in nets}
    document = {"machine": machine(), "models": json.loads(json.dumps(found))}
    save("torch_pipelines", document, markdown(found), folder if wanted.quick else RESULTS)


if __name__ == "__main__":
    main()
