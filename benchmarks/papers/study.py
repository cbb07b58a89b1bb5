"""The runs of the study: which there are, and doing those that are missing."""

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.grouped import by_rules
from benchmarks.one_core import SEARCHES, side_by_side
from benchmarks.papers.published import Table
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.bounds import lower_bound
from placeto.placers import NotApplicable, place
from placeto.placers.registry import find_config
from placeto.reports.rows import seconds
from placeto.support.files import write_bytes

GROUPING = 128
PACKAGES = ("numpy", "numba", "torch", "scipy", "pymetis", "pyscotch")
Run = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a study consists of.

    Attributes:
        tables: which tables.
        seconds: budget of a search, of one core's time: other processes do not shorten it.
        seeds: how many seeds for what is random.
    """

    tables: Sequence[Table]
    seconds: float
    seeds: int

    def runs(self) -> Iterator[Run]:
        """What names each run, problem by problem; one that is in two tables counts once."""
        seen = set()
        for table in self.tables:
            for column in table.columns:
                for method in table.methods:
                    drawn = method.split()[0] in (*SEARCHES, "random")
                    for seed in range(self.seeds if drawn else 1):
                        run = {
                            "graph": column.graph,
                            "cluster": column.cluster,
                            "method": method,
                            "seed": seed,
                            "budget_seconds": self.seconds,
                        }
                        if _key(run) not in seen:
                            seen.add(_key(run))
                            yield run


def conduct(
    plan: Plan, path: Path, perform_all: Callable[[Sequence[Run]], Iterable[Run]] | None = None
) -> list[Run]:
    """Does the runs that a results file does not have; it is written after each.

    Args:
        plan: what there is to do.
        path: the results file.
        perform_all: does runs, in any order; default: side by side.

    Returns:
        All runs of the plan.
    """
    document = json.loads(path.read_text()) if path.exists() else {"runs": []}
    have = {_key(run): run for run in document["runs"]}
    wanted = list(plan.runs())
    missing = [run for run in wanted if _key(run) not in have]
    found = side_by_side(perform, missing) if perform_all is None else perform_all(missing)
    for number, done in enumerate(found):
        have[_key(done)] = done
        told = done["note"] or f"{done['step_time']:.4g} s, {done['evaluations']} placements"
        print(
            f"{number + 1}/{len(missing)} {done['graph']} {done['cluster']} {done['method']} "
            f"{done['seed']}: {told}",
            flush=True,
        )
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
    try:
        placement = place(
            problem,
            run["method"].split()[0],
            run["budget_seconds"],
            run["seed"],
            settings=settings_of(run["method"]),
            clock=time.process_time,
        )
    except NotApplicable as error:
        return {**found, "note": str(error)}
    if placement.interrupted:
        raise KeyboardInterrupt
    return {
        **found,
        "step_time": seconds(placement.step_time),
        "feasible": placement.feasible,
        "evaluations": placement.evaluations,
        "wall_seconds": round(placement.wall_seconds, 3),
        "trace": [list(point) for point in placement.trace],
    }


def settings_of(method: str) -> dict[str, object]:
    """The settings that follow a placer's name, as in `placeto passing=none`."""
    name, *settings = method.split()
    pairs = (setting.split("=") for setting in settings)
    return {key: find_config(name).read(key, text) for key, text in pairs}


def machine() -> str:
    """The machine, in words."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _key(run: Run) -> tuple[Any, ...]:
    return (run["graph"], run["cluster"], run["method"], run["seed"], run["budget_seconds"])


@lru_cache(maxsize=2)
def _problem(graph: str, cluster: str) -> tuple[PlacementProblem, float]:
    loaded = load_graph(graph)
    problem = PlacementProblem(loaded, load_cluster(cluster), by_rules(loaded, GROUPING))
    return problem, lower_bound(problem)
