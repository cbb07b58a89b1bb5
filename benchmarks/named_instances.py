"""Forty named instances and the best that is known of each: `python -m benchmarks.named_instances`.

Bundled graphs and made-up ones, clusters of the papers and of today, one host and several, steps of
one microbatch and of eight, with the papers' groups and free. Placers search them, each on one
core; then a search goes on from the best known, op by op. What is better than that replaces it in
the package's `data/instances.json.gz`. It takes half an hour. `--take FILE… --by NAME` takes in
placements of others. Writes `results/named_instances.json` and `.md` too.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from benchmarks.one_core import side_by_side
from benchmarks.output import RESULTS, command_line, machine, save, table_of
from placeto import PlacementProblem, place
from placeto.bounds import lower_bound
from placeto.grouping import Grouping
from placeto.placers import NotApplicable
from placeto.placers.ordering import ordered
from placeto.reports.tables import format_time
from placeto.simulation import simulate
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json
from placeto.zoo.instances import (
    EQUAL,
    PATH,
    Best,
    Instance,
    InstancesDocument,
    instances,
    standings,
)

OF_PAPERS = {
    "inception_v3": ("k80x2", "k80x4", "k40x2-cpu"),
    "nasnet": ("k80x2", "k80x4"),
    "rnnlm": ("k80x2-cpu",),
    "nmt": ("k80x2", "k80x4"),
    "nmt_4": ("k80x4",),
    "nmt_8": ("k80x8",),
    "resnet50": ("k40x4-cpu",),
    "transformer": ("k80x4",),
}
FREE = {
    "inception_v3": ("k80x4", "a100x2-v100x2-cpu", "p3.8xlarge-2"),
    "nasnet": ("k80x8", "h100x8"),
    "rnnlm": ("p2.8xlarge",),
    "nmt": ("k80x4", "p100x2-k80x2"),
    "nmt_4": ("n1-p100x2-4",),
    "nmt_8": ("v100x8-nvlink",),
    "resnet50": ("p100x2-k80x2",),
    "transformer": ("v100x8-nvlink", "p3.8xlarge-2"),
    "cifar10_small": ("k80x4",),
    "ptb_small": ("k80x2-cpu",),
    "nmt_small": ("a100x8",),
    "family:layered?number=3": ("k80x4",),
    "family:layered?number=12": ("n1-p100x2-4",),
    "family:series_parallel?number=5": ("p3.8xlarge-2",),
    "family:random?number=7": ("v100x8-nvlink",),
    "transformer_small_m8": ("k80x4", "v100x8-nvlink", "n1-p100x2-4"),
    "cifar10_small_m8": ("k80x4", "p3.8xlarge-2"),
    "nmt_small_m8": ("k80x4", "p3.8xlarge-2"),
    "ptb_small_m8": ("k80x2",),
}
SECONDS = {"auto": 20.0, "placeto": 20.0}
REFINING = 10.0  # from the best known, op by op
HEURISTICS = ("single", "expert", "scotch", "metis", "heft", "m-etf", "stages")
NOBODY = Best(step_time=np.inf, found_by="", op_devices="")
# Which no order of a pipelined step is told by: its bound holds in any.
ANY_ORDER = "critical-path"


def every() -> list[Instance]:
    """All instances, with what is known of them; of those that are new that is nothing."""
    known = instances()
    found = []
    for grouping, sources in (("papers", OF_PAPERS), ("none", FREE)):
        for source, clusters in sources.items():
            for cluster in clusters:
                new = Instance(source, cluster, grouping, 0.0, NOBODY)  # type: ignore[arg-type]
                found.append(known.get(new.name, new))
    return found


def search(instance: Instance) -> tuple[Instance, dict[str, Any]]:
    """The instance with the best that is known by now, and what placers found."""
    bounded = instance.problem()
    pipelined = bounded.graph.num_microbatches > 1
    bound = lower_bound(instance.problem(order=ANY_ORDER) if pipelined else bounded)
    instance = msgspec.structs.replace(instance, lower_bound=bound)
    grouping: Grouping = "papers" if instance.grouping == "papers" else "auto"
    problem = ordered(instance.problem(grouping))
    found: dict[str, float] = {}
    for method in (*HEURISTICS, *SECONDS):
        try:
            placement = place(problem, method, SECONDS.get(method, 1.0), clock=time.process_time)
        except NotApplicable:
            continue
        found[method] = placement.step_time if placement.feasible else np.inf
        if placement.feasible:
            instance = better(instance, placement.problem, placement.devices, method)
    known, devices = instance.best_placement()
    more = place(known, "auto", REFINING, clock=time.process_time, start=devices)
    instance = better(instance, more.problem, more.devices, "auto, refined")
    heuristic = min(found.get(method, np.inf) for method in HEURISTICS)
    row = {"instance": instance.name, "ops": bounded.graph.num_ops, "groups": problem.num_groups,
           "devices": problem.num_devices, "heuristic": heuristic}  # fmt: skip
    return instance, row | {method: found[method] for method in SECONDS}


def better(instance: Instance, problem: PlacementProblem, devices: Ints, who: str) -> Instance:
    """The instance, with a placement as the best known if it is better and fits."""
    schedule = simulate(problem, devices)
    if not schedule.feasible or schedule.step_time >= instance.best.step_time * (1 - EQUAL):
        return instance
    digits = "".join(map(str, devices[problem.op_group].tolist()))
    order = problem.order if isinstance(problem.order, str) else np.asarray(problem.order).tolist()
    found = Best(step_time=schedule.step_time, found_by=who, op_devices=digits, order=order)
    return msgspec.structs.replace(instance, best=found)


def write(found: Sequence[Instance]) -> None:
    """Writes the package's file."""
    write_json(PATH, msgspec.to_builtins(InstancesDocument(instances=tuple(found))))


def take(paths: Sequence[str], who: str) -> None:
    """Takes in placements of others that are better."""
    found = dict(instances())
    for path in paths:
        for each in standings(path):
            name = each.instance.name
            after = better(found[name], each.problem, each.devices, who)
            print(f"{path}: {name}: {each.verdict}")
            found[name] = after
    write(list(found.values()))


def markdown(rows: Sequence[dict[str, Any]], found: dict[str, Instance]) -> str:
    """A row an instance; what placers found is over the best known."""
    lines = []
    for row in rows:
        each = found[row["instance"]]
        # fmt: off
        lines.append({
            "instance": f"`{each.name}`", "ops": f"{row['ops']:,}", "devices": str(row["devices"]),
            "best known": format_time(each.best.step_time), "bound": format_time(each.lower_bound),
            "gap": f"{each.gap:.1%}", "found by": each.best.found_by,
        } | {
            label: "-" if row[key] is None else f"{row[key] / each.best.step_time:.3f}"
            for key, label in (("heuristic", "best heuristic"), ("auto", "`auto`"),
                               ("placeto", "`placeto`"))
        })
        # fmt: on
    return table_of(lines)


def main() -> None:
    """Searches, or takes in what others found."""
    parser = command_line("named_instances", "only the made-up graphs; writes nothing")
    parser.add_argument("--take", nargs="+", metavar="FILE", help="placement files of others")
    parser.add_argument("--by", help="who found them")
    names = [each.name for each in every()]
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=names, help="search these again"
    )
    wanted = parser.parse_args()
    if wanted.take:
        if not wanted.by:
            parser.error("--take: say --by whom")
        take(wanted.take, wanted.by)
        return
    chosen = [each for each in every() if not wanted.quick or each.source.startswith("family:")]
    kept, rows = {each.name: each for each in chosen}, {}
    if wanted.only:
        rows = {row["instance"]: row for row in read_json(RESULTS / "named_instances.json")["rows"]}
        chosen = [kept[name] for name in wanted.only]
    for instance, row in side_by_side(search, chosen):
        row |= {key: None for key, value in row.items() if value == np.inf}
        print(f"{instance.name}: {row}", file=sys.stderr, flush=True)
        kept[instance.name] = instance
        rows[instance.name] = row
        if not wanted.quick:
            write([each for each in kept.values() if each.best.step_time < np.inf])
    if wanted.quick:
        print(markdown(list(rows.values()), kept), end="")
        return
    found = [rows[name] for name in kept]
    document = {"machine": machine(), "seconds": SECONDS, "refining": REFINING, "rows": found}
    save("named_instances", document, markdown(found, kept), RESULTS, indent=1)


if __name__ == "__main__":
    main()
