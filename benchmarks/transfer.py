"""Policies on graphs that they have not seen: `python -m benchmarks.transfer`.

Six test graphs of each family, which no policy was trained or validated on, on a cluster that the
policies have learned with and on one that they have not. Heuristics; a policy alone, one greedy
sweep and the best of sixteen; `auto` with that policy and without any, and the method `placeto`, in
so many seconds of one core's time, whatever else the machine does. Further policies, `--policy
NAME=DIR`, are run alone. An hour on two cores, extraction included, and it goes on where it was
stopped; `--quick` is one small graph. Writes `results/transfer.json` and `.md`, and
`docs/transfer.png`.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.one_core import side_by_side
from benchmarks.output import (
    command_line,
    machine,
    panels,
    picture_of,
    results_folder,
    save,
    table_of,
)
from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.extraction import extract
from placeto.graph import ComputationGraph
from placeto.grouping import Grouping
from placeto.models.stored import load_trained
from placeto.placers import NotApplicable
from placeto.search.settings import NO_POLICY, PIPELINED, SHIPPED
from placeto.support.files import read_json, write_json
from placeto.zoo.families import Member, is_synthetic, members
from placeto.zoo.folders import synthetic_member

PIPELINES = "pipelined"
FAMILIES = ("cifar10", "nmt", "ptb", "transformer", PIPELINES)
GRAPHS = 6  # of each family's eight test graphs
QUICK = ("layered",)
HEURISTICS = ("single", "expert", "stages", "scotch", "metis", "etf", "heft", "m-etf", "m-sct")
GREEDY, BEST = "greedy", "best of 16"
ALONE: Mapping[str, Mapping[str, Any]] = {
    GREEDY: {"decoding": "greedy"},
    BEST: {"decoding": "sampling", "samples": 16, "batches": 1},
}
ENDLESS = 600.0  # s, more than sweeps take
SHORT, LONG = (1.0, 5.0), 20.0  # s of a core
WITHOUT, PAPERS = "no policy", "auto, groups papers"
Found = dict[str, dict[str, float]]  # what was run -> step time, and seconds that it took
Task = tuple[str, int, str, Sequence[tuple[str, str]], Sequence[float], float]


def clusters_of(family: str) -> tuple[str, str]:
    """One that policies of such graphs have learned with, and one that they have not."""
    return ("k80x4", "v100x8-nvlink") if family == PIPELINES else ("k80x4", "p100x2-k80x2")


def policy_of(family: str) -> str:
    """The one that ships for such graphs."""
    return PIPELINED if family == PIPELINES else SHIPPED


def held_out(family: str) -> list[Member]:
    """The test graphs of a family."""
    return [member for member in members(family) if member.split == "test"]


def graph_of(member: Member) -> ComputationGraph:
    """A member's graph, extracted once."""
    if is_synthetic(member.family):
        return synthetic_member(member)
    path = Path("build") / "transfer" / f"{member.name}.json.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        extract(member.source).save(path)
    return load_graph(path)


def run(task: Task) -> Found:
    """What everything finds for a problem; infinite where that does not fit in memory."""
    family, number, cluster, policies, short, long = task
    graph = graph_of(held_out(family)[number])
    order = "eager-1f1b" if graph.num_microbatches > 1 else "fifo"
    problem = PlacementProblem(graph, load_cluster(cluster), order=order)
    found: Found = {}

    def tried(
        name: str, method: str, budget: float, grouping: Grouping = "auto", **settings: Any
    ) -> None:
        # A problem keeps what was computed of it: a fresh one serves nobody by those before.
        fresh, began = replace(problem, grouping=grouping), time.process_time()
        with suppress(NotApplicable):
            placed = place(fresh, method, budget, clock=time.process_time, settings=settings)
            step_time = placed.step_time if placed.feasible else np.inf
            found[name] = {"step_time": step_time, "seconds": time.process_time() - began}

    for method in HEURISTICS:
        tried(method, method, ENDLESS)
    for name, source in policies:
        for decoding, settings in ALONE.items():
            tried(f"{name}, {decoding}", "placeto", ENDLESS, policy=source, **settings)
    for seconds in short:
        for name in (policy_of(family), NO_POLICY):
            tried(searched(seconds, name), "auto", seconds, policy=name)
    tried(PAPERS, "auto", short[-1], grouping="papers", policy=policy_of(family))
    for method in ("placeto", "auto"):
        tried(f"{method}, {long:g} s", method, long)
    return found


def searched(seconds: float, policy: str) -> str:
    """What `auto` with a policy or none is called."""
    return f"auto, {seconds:g} s, {WITHOUT if policy == NO_POLICY else policy}"


def check_unseen(policies: Mapping[str, str]) -> None:
    """SystemExit if a policy was trained or validated on a test graph."""
    tests = {member.name for family in FAMILIES for member in held_out(family)}
    for name, source in policies.items():
        trained = load_trained(source)
        seen = trained.trained_on("graph")
        seen |= {row["graph"] for row in trained.card.get("validation", ())}
        if leaked := seen & tests:
            raise SystemExit(f"{name}: was trained or validated on {min(leaked)}, a test graph")


def ratios(problems: Sequence[Found], name: str, over: str) -> list[float]:
    """By problem the step time of one over that of another."""
    return [each[name]["step_time"] / each[over]["step_time"] for each in problems if name in each]


def mean(values: Sequence[float]) -> str:
    """The geometric mean, and of how many it is not where some are infinite."""
    met = [value for value in values if np.isfinite(value)]
    text = f"{np.exp(np.mean(np.log(met))):.3f}" if met else "-"
    return text if len(met) == len(values) else f"{text} ({len(met)})"


def nearest(problems: Sequence[Found]) -> str:
    """The heuristic that is best in the mean, where all that it finds fits."""
    there = [name for name in HEURISTICS if all(name in each for each in problems)]
    return min(there, key=lambda name: float(np.mean(np.log(ratios(problems, name, "single")))))


def ahead(problems: Sequence[Found], name: str) -> str:
    """On how many problems one is not behind any heuristic."""
    least = [min(each[h]["step_time"] for h in HEURISTICS if h in each) for each in problems]
    count = sum(
        each[name]["step_time"] <= best * 1.001 for each, best in zip(problems, least, strict=True)
    )
    return f"{count} of {len(problems)}"


def markdown(document: Mapping[str, Any]) -> str:
    """A row a family and cluster with what ships, over the longest `auto`; a row a policy."""
    found, short, long = document["found"], document["short_seconds"], document["long_seconds"]
    over = f"auto, {long:g} s"
    rows = []
    for family, of_family in found.items():
        policy = policy_of(family)
        for cluster, of_cluster in of_family.items():
            problems = list(of_cluster.values())
            name = nearest(problems)
            heuristic = f"{mean(ratios(problems, name, over))} (`{name}`)"
            alone = f"{policy}, {BEST}"
            took = [each[alone]["seconds"] for each in problems]
            row = {
                "family": family, "cluster": f"`{cluster}`", "nearest heuristic": heuristic,
                GREEDY: mean(ratios(problems, f"{policy}, {GREEDY}", over)),
                BEST: mean(ratios(problems, alone, over)),
                "s": f"{np.median(took):.2f}", "ahead": ahead(problems, alone),
            }  # fmt: skip
            for seconds in short:
                pair = (mean(ratios(problems, searched(seconds, policy), over)),
                        mean(ratios(problems, searched(seconds, NO_POLICY), over)))  # fmt: skip
                row[f"`auto`, {seconds:g} s, with / without"] = " / ".join(pair)
            row[f"`placeto`, {long:g} s"] = mean(ratios(problems, f"placeto, {long:g} s", over))
            with_policy = searched(short[-1], policy)
            row["over groups `papers`"] = mean(ratios(problems, with_policy, PAPERS))
            rows.append(row)
    policies = []
    for policy in document["policies"]:
        row = {"policy": f"`{policy}`"}
        for family, of_family in found.items():
            problems = [each for of_cluster in of_family.values() for each in of_cluster.values()]
            ran = [mean(ratios(problems, f"{policy}, {each}", over)) for each in ALONE]
            row[f"{family}, {GREEDY} / {BEST}"] = " / ".join(ran)
        policies.append(row)
    return f"{table_of(rows)}\n{table_of(policies)}"


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Draws a panel a family: the share of problems within so much of the best known."""
    found = document["found"]
    with panels(path, len(found), (4.5, 3.2), ncols=4, fontsize=8) as axes:
        for ax, (family, of_family) in zip(axes, found.items(), strict=True):
            problems = [each for of_cluster in of_family.values() for each in of_cluster.values()]
            best = [min(run["step_time"] for run in each.values()) for each in problems]
            policy = policy_of(family)
            lines = {name: name for name in ("single", "expert", "metis", "etf")}
            lines |= {f"policy, {name}": f"{policy}, {name}" for name in ALONE}
            first = document["short_seconds"][0]
            lines |= {f"auto, {first:g} s, {WITHOUT}": searched(first, NO_POLICY)}
            lines |= {f"auto, {first:g} s, policy": searched(first, policy)}
            for label, name in lines.items():
                over = sorted(
                    each[name]["step_time"] / least if name in each else np.inf
                    for each, least in zip(problems, best, strict=True)
                )
                met = [value for value in over if np.isfinite(value)]
                shares = np.arange(len(met) + 1) / len(problems)
                ax.step([1.0, *met], shares, where="post", label=label)
            ax.set_xlim(0.99, 2)
            ax.set_title(family, fontsize=10)
            ax.set_ylabel("share of problems")
            ax.set_xlabel("step time over the best known")


def main() -> None:
    """Runs what is missing, and writes all of it."""
    parser = command_line("transfer", "one made-up graph, half a second; into `build`")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME=DIR")
    wanted = parser.parse_args()
    quick = wanted.quick
    families, graphs = (QUICK, 1) if quick else (FAMILIES, GRAPHS)
    short, long = ((0.3,), 0.5) if quick else (SHORT, LONG)
    policies = {name: name for name in (SHIPPED, PIPELINED)}
    policies |= dict(text.split("=", 1) for text in wanted.policy)
    check_unseen(policies)
    folder = results_folder(quick)
    kept = Path("build") / "transfer" / f"found{'-quick' * quick}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, dict[str, Found]]] = read_json(kept) if kept.exists() else {}
    tasks: list[Task] = [
        (family, number, cluster, tuple(policies.items()), short, long)
        for number, which, family in product(range(graphs), range(2), families)
        for cluster in clusters_of(family)[which : which + 1]
        if str(number) not in found.get(family, {}).get(cluster, {})
    ]
    for task, ran in zip(tasks, side_by_side(run, tasks), strict=True):
        family, number, cluster, *_ = task
        print(f"{family} {number} on {cluster}", file=sys.stderr, flush=True)
        found.setdefault(family, {}).setdefault(cluster, {})[str(number)] = ran
        write_json(kept, found)
    document = {
        "machine": machine(), "policies": list(policies), "short_seconds": short,
        "long_seconds": long, "found": {family: found[family] for family in families},
    }  # fmt: skip
    save("transfer", document, markdown(document), folder)
    draw(document, picture_of("transfer", folder))


if __name__ == "__main__":
    main()
