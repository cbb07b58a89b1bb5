"""The runs of the study: which there are, and doing those that are missing."""

import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.papers.published import SEARCHES, Table
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.bounds import lower_bound
from placeto.files import write_bytes
from placeto.placers import NotApplicable, place
from placeto.reports.rows import seconds

GROUPING = "auto"
PACKAGES = ("numpy", "numba", "torch", "scipy", "pymetis", "pyscotch")
Run = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a study consists of.

    Attributes:
        tables: which tables.
        seconds: budget of a search, wall-clock.
        seeds: how many seeds for what is random.
    """

    tables: Sequence[Table]
    seconds: float
    seeds: int

    def runs(self) -> Iterator[Run]:
        """What names each run, in the order of the tables; a problem in two tables counts once."""
        seen = set()
        for table in self.tables:
            for seed in range(self.seeds):
                for column in table.columns:
                    for method in table.methods:
                        key = (column.graph, column.cluster, method, seed)
                        if key in seen or (seed and method not in (*SEARCHES, "random")):
                            continue
                        seen.add(key)
                        yield {
                            "graph": column.graph,
                            "cluster": column.cluster,
                            "method": method,
                            "seed": seed,
                            "budget_seconds": self.seconds,
                        }


def conduct(plan: Plan, path: Path) -> list[Run]:
    """Does the runs that a results file does not have; it is written after each.

    Returns:
        All runs of the plan.
    """
    document = json.loads(path.read_text()) if path.exists() else {"runs": []}
    have = {_key(run): run for run in document["runs"]}
    wanted = list(plan.runs())
    for number, run in enumerate(wanted):
        if _key(run) in have:
            continue
        have[_key(run)] = done = perform(run)
        told = done["note"] or f"{done['step_time']:.4g} s, {done['evaluations']} placements"
        print(
            f"{number + 1}/{len(wanted)} {run['graph']} {run['cluster']} {run['method']} "
            f"{run['seed']}: {told}",
            flush=True,
        )
        document = {
            "command": "python -m benchmarks.papers",
            "grouping": GROUPING,
            "machine": machine(),
            "packages": {name: metadata.version(name) for name in PACKAGES},
            "runs": list(have.values()),
        }
        lines = json.dumps(document).replace('{"graph"', '\n{"graph"')  # a run a line
        write_bytes(path, lines.encode() + b"\n")
    return [have[_key(run)] for run in wanted]


def perform(run: Run) -> Run:
    """One run: the run with what was found, or with a note why there is nothing."""
    problem = _problem(run["graph"], run["cluster"])
    bound = seconds(_bound(run["graph"], run["cluster"]))
    found: Run = {**run, "lower_bound": bound, "note": ""}
    try:
        placement = place(problem, run["method"], run["budget_seconds"], run["seed"])
    except NotApplicable as error:
        return {**found, "note": str(error)}
    return {
        **found,
        "step_time": seconds(placement.step_time),
        "feasible": placement.feasible,
        "evaluations": placement.evaluations,
        "wall_seconds": placement.wall_seconds,
        "trace": [list(point) for point in placement.trace],
    }


def machine() -> str:
    """The machine, in words."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _key(run: Run) -> tuple[Any, ...]:
    return (run["graph"], run["cluster"], run["method"], run["seed"], run["budget_seconds"])


@lru_cache(maxsize=1)
def _problem(graph: str, cluster: str) -> PlacementProblem:
    return PlacementProblem(load_graph(graph), load_cluster(cluster), GROUPING)


@lru_cache(maxsize=1)
def _bound(graph: str, cluster: str) -> float:
    return lower_bound(_problem(graph, cluster))
