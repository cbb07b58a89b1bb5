"""The runs of the study: which there are, and doing those that are missing."""

import json
import time
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.one_core import SEARCHES, side_by_side
from benchmarks.output import machine
from benchmarks.papers.published import Table
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.bounds import lower_bound
from placeto.placers import NotApplicable, place
from placeto.placers.registry import find_config
from placeto.reports.rows import seconds
from placeto.support.files import write_bytes

GROUPING = "papers"
PACKAGES = ("numpy", "numba", "torch", "scipy", "pymetis", "pyscotch")
KEYS = ("graph", "cluster", "method", "seed", "budget_seconds")
Run = dict[str, Any]
_key = itemgetter(*KEYS)


def runs_of(tables: Sequence[Table], seconds: float, seeds: int) -> list[Run]:
    """What names each run, problem by problem; one that is in two tables counts once.

    A search has so many seconds of one core's time; what is random has so many seeds.
    """
    found: dict[tuple[Any, ...], Run] = {}
    for table in tables:
        for column, method in product(table.columns, table.methods):
            drawn = method.split()[0] in (*SEARCHES, "random")
            for seed in range(seeds if drawn else 1):
                key = column.graph, column.cluster, method, seed, seconds
                found[key] = dict(zip(KEYS, key, strict=True))
    return list(found.values())


def conduct(wanted: Sequence[Run], path: Path) -> list[Run]:
    """Does the runs that a results file does not have, side by side; it is written after each."""
    document = json.loads(path.read_text()) if path.exists() else {}
    same = document.get("grouping") == GROUPING
    have = {_key(run): run for run in document["runs"]} if same else {}
    missing = [run for run in wanted if _key(run) not in have]
    for number, done in enumerate(side_by_side(perform, missing)):
        have[_key(done)] = done
        told = done["note"] or f"{done['step_time']:.4g} s, {done['evaluations']} placements"
        names = " ".join(str(done[key]) for key in KEYS[:4])
        print(f"{number + 1}/{len(missing)} {names}: {told}", flush=True)
        document = {
            "command": "python -m benchmarks.papers",
            "grouping": GROUPING,
            "machine": machine(),
            "packages": {name: metadata.version(name) for name in PACKAGES},
            "runs": [have[_key(run)] for run in wanted if _key(run) in have],
        }
        lines = json.dumps(document).replace('{"graph"', '\n{"graph"')  # a run a line
        write_bytes(path, lines.encode() + b"\n")
    return [have[_key(run)] for run in wanted]


def perform(run: Run) -> Run:
    """One run: the run with what was found, or with a note why there is nothing."""
    problem, bound = _problem(run["graph"], run["cluster"])
    found: Run = {**run, "lower_bound": seconds(bound), "note": ""}
    name, budget, seed = run["method"].split()[0], run["budget_seconds"], run["seed"]
    more: Any = {"settings": settings_of(run["method"]), "clock": time.process_time}
    try:
        placement = place(problem, name, budget, seed, **more)
    except NotApplicable as error:
        return {**found, "note": str(error)}
    if placement.interrupted:
        raise KeyboardInterrupt
    return {
        **found, "step_time": seconds(placement.step_time), "feasible": placement.feasible,
        "evaluations": placement.evaluations, "wall_seconds": round(placement.wall_seconds, 3),
        "trace": [list(point) for point in placement.trace],
    }  # fmt: skip


def settings_of(method: str) -> dict[str, object]:
    """The settings that follow a placer's name, as in `placeto passing=none`."""
    name, *settings = method.split()
    pairs = (setting.split("=") for setting in settings)
    return {key: find_config(name).read(key, text) for key, text in pairs}


@lru_cache(maxsize=2)
def _problem(graph: str, cluster: str) -> tuple[PlacementProblem, float]:
    problem = PlacementProblem(load_graph(graph), load_cluster(cluster), GROUPING)
    return problem, lower_bound(problem)
