"""Which threads work while a policy is trained."""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numba
import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread_an_operation() -> Iterator[None]:
    """Keeps torch from splitting single operations over threads.

    The networks are small, and threads that wait for the next operation take the cores from those
    that simulate. Sums are also the same then whatever the number of cores.
    """
    # When numba first starts its threads it sets the number of OpenMP's, which torch asks for.
    numba.get_num_threads()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Results of a function that leaves the interpreter to others, in the order of the items.

    As many are computed at once as numba has threads. Once the iterator is closed, nothing runs.
    """
    # A thread does not inherit OpenMP's number of threads, and some operations ask OpenMP only.
    start, threads = torch.set_num_threads, torch.get_num_threads()
    pool = ThreadPoolExecutor(numba.get_num_threads(), initializer=start, initargs=(threads,))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
