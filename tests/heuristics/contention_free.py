"""Small problems on identical devices where no transfer hinders another, solved by brute force."""

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from placeto import PlacementProblem
from tests.builders import make_cluster, make_graph, make_problem


@dataclass(frozen=True)
class Tasks:
    """Tasks with whole seconds; edges from lower to higher numbers, with bytes at 1 byte/s."""

    seconds: list[int]
    edges: dict[tuple[int, int], int]
    devices: int

    def problem(self) -> PlacementProblem:
        names = [f"t{task}" for task in range(len(self.seconds))]
        graph = make_graph(
            {name: float(time) for name, time in zip(names, self.seconds, strict=True)},
            [(names[i], size, [names[j]]) for (i, j), size in self.edges.items()],
        )
        return make_problem(graph, make_cluster(self.devices))

    @property
    def longest_chain(self) -> int:
        """Seconds of the longest path, transfers left out."""
        return max(self._paths([0] * len(self.edges)))

    @property
    def longest_transfers(self) -> int:
        """The most seconds of transfers along a path."""
        seconds = Tasks([0] * len(self.seconds), self.edges, self.devices)
        return max(seconds._paths(list(self.edges.values())))

    def _paths(self, transfers: list[int]) -> list[int]:
        ends = list(self.seconds)
        for (i, j), size in sorted(zip(self.edges, transfers, strict=True), key=lambda e: e[0][1]):
            ends[j] = max(ends[j], ends[i] + size + self.seconds[j])
        return ends


@st.composite
def tasks(
    draw: st.DrawFn,
    max_tasks: int,
    seconds: tuple[int, int] = (1, 6),
    sizes: tuple[int, int] = (0, 6),
    max_devices: int = 3,
) -> Tasks:
    count = draw(st.integers(1, max_tasks))
    pairs = list(itertools.combinations(range(count), 2))
    chosen = (
        draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * count)) if pairs else []
    )
    return Tasks(
        draw(st.lists(st.integers(*seconds), min_size=count, max_size=count)),
        {pair: draw(st.integers(*sizes)) for pair in sorted(chosen, key=lambda p: (p[1], p[0]))},
        draw(st.integers(1, max_devices)),
    )


def check_schedule(given: Tasks, devices: np.ndarray, finish: np.ndarray) -> None:
    """Nothing runs before its inputs are there, or while its device runs something else."""
    start = finish - np.array(given.seconds)
    assert (start >= 0).all()
    for (i, j), size in given.edges.items():
        assert start[j] >= finish[i] + (size if devices[i] != devices[j] else 0)
    for device in range(given.devices):
        here = np.flatnonzero(devices == device)
        by_start = here[np.argsort(start[here])]
        assert (start[by_start][1:] >= finish[by_start][:-1]).all()


def shortest(given: Tasks, *, transfers: bool) -> int:
    """The shortest schedule there is, with transfers or as if they took no time."""
    parents: dict[int, list[tuple[int, int]]] = {}
    for (i, j), size in given.edges.items():
        parents.setdefault(j, []).append((i, size if transfers else 0))
    best = sum(given.seconds)  # one after another on one device

    def extend(placed: dict[int, tuple[int, int]], free: tuple[int, ...], longest: int) -> None:
        nonlocal best
        if longest >= best:
            return
        if len(placed) == len(given.seconds):
            best = longest
            return
        for task, seconds in enumerate(given.seconds):
            inputs = parents.get(task, [])
            if task in placed or any(source not in placed for source, _ in inputs):
                continue
            tried = set()
            for device, idle in enumerate(free):
                if idle == 0 and 0 in tried:
                    continue  # idle devices are alike
                tried.add(idle)
                ready = max(
                    (
                        placed[source][1] + (size if placed[source][0] != device else 0)
                        for source, size in inputs
                    ),
                    default=0,
                )
                end = max(ready, idle) + seconds
                extend(
                    {**placed, task: (device, end)},
                    (*free[:device], end, *free[device + 1 :]),
                    max(longest, end),
                )

    extend({}, (0,) * given.devices, 0)
    return best
