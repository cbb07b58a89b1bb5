"""Searches side by side, each in a process with one thread and with seconds of its core's time.

So what else the machine does is not held against them.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numba
import torch

from placeto import PlacementProblem, load_cluster, load_graph, place

SIDE_BY_SIDE = 2
SEARCHES = ("annealing", "colocrl", "hierarchical", "placeto", "placeto-2019")


def side_by_side(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """The function's results in order; once the iterator is closed, nothing runs."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(SIDE_BY_SIDE, context, _one_thread)
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    """Makes a process keep to one core, and load and compile what the searches need."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    for method in SEARCHES:
        place(PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 8), method, 3.0)
