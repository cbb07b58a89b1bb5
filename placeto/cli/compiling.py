"""Compiling on two cores, where a first command finds nothing compiled yet."""

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from placeto.bounds import lower_bound
from placeto.bounds.joins import join_heads
from placeto.heuristics.etf import earliest_finish
from placeto.heuristics.initial import all_on
from placeto.problem import PlacementProblem
from placeto.search.auto import small_problem
from placeto.search.incumbent import Incumbent
from placeto.search.policy import compiled_policy, offer_greedy, stored
from placeto.search.settings import SearchConfig


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Has what a command needs last compiled by another process, while it goes on.

    At the end of the block the bounds are there: they are waited for. Nothing is done where they
    were compiled before, or where there is one core.
    """
    kept = Path(join_heads.stats.cache_path).glob(f"joins.{join_heads.py_func.__name__}-*.nbi")
    if any(kept) or len(os.sched_getaffinity(0)) < 2:
        yield
        return
    code = f"from {__name__} import compile_last; compile_last()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            yield
            assert child.stdout is not None
            child.stdout.readline()
        finally:
            child.kill()


def compile_last() -> None:
    """Compiles the bounds, of which it tells by a line, then ETF, then the sweeps of a policy."""
    problem = small_problem()
    halves = np.arange(problem.graph.num_ops) * 2 // problem.graph.num_ops
    lower_bound(PlacementProblem(problem.graph, problem.cluster, halves))
    print("the bounds are compiled", flush=True)
    earliest_finish(problem)
    ready = compiled_policy(stored(SearchConfig.policy), problem)
    offer_greedy(Incumbent(problem, math.inf), ready, all_on(problem, 0))
