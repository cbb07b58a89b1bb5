"""Crews that work in this process, so that a test decides what is done when."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from placeto.simulation import simulate_many
from placeto.training.distributed.asynchronous import Controller
from placeto.training.distributed.synchronous import Player


class Here:
    """What the trainers ask of a crew.

    Args:
        works: what does the work, of each worker.

    Attributes:
        items: all that were handed over, as they were then.
    """

    def __init__(self, works: list[Callable[[Any], Any]]) -> None:
        self.size = len(works)
        self.items: list[Any] = []
        self._works = works
        self._done: list[tuple[int, Any]] = []

    def submit(self, item: Any) -> int:
        ticket = len(self.items)
        copy = pickle.loads(pickle.dumps(item))
        self.items.append(copy)
        self._done.append((ticket, self._works[ticket % self.size](copy)))
        return ticket

    def take(self) -> tuple[int, Any]:
        return self._done.pop(0)

    def map(self, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """The last first: the order in which workers finish is not the order of the items."""
        numbers = {self.submit(item): number for number, item in enumerate(items)}
        done, self._done = self._done[::-1], []
        return iter([(numbers[ticket], result) for ticket, result in done])


def players(problems, config, size):
    return Here([Player(problems, config, lambda: simulate_many) for _ in range(size)])


def controllers(problems, config, size, workers=1):
    return Here(
        [Controller(problems, config, players(problems, config, workers)) for _ in range(size)]
    )
