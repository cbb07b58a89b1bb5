"""What every placer works with: the best placement so far, and the budget."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from placeto.grouping import coarsen
from placeto.objective import evaluate, overflow
from placeto.placement import Placement
from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes, simulate
from placeto.support.arrays import Ints
from placeto.support.progress import Progress, silent

Clock = Callable[[], float]
Settings = Mapping[str, object]
NO_SETTINGS: Settings = MappingProxyType({})

# Of each run of a placer: as many placements as anybody would want to measure.
RECENT = 8


@dataclass
class Incumbent:
    """The best placement that a placer has offered; it also counts, and knows the deadline.

    A placer offers every placement it considers, so that an interrupt at any time leaves the
    best one. A feasible placement is better than an infeasible one; of two feasible ones the
    faster is, by the problem's objective; of two infeasible ones that with less memory over the
    limit. What is said of step times holds for the objective's seconds.

    Attributes:
        problem: what is placed.
        budget_seconds: seconds of `clock`, from when the incumbent is made.
        progress: told of what is going on, in single lines.
        clock: tells seconds.
        started: when the incumbent was made.
        devices: (num_groups,) the best placement, or None before the first.
        evaluations: placements simulated so far.
        lower_bound, trace, learning: see `Placement`; a batch is at most once in the trace.
        recent: (num_groups,) devices of the last `RECENT` in the trace, all different, the fastest
            last.
        part: what is at work, of a placer that is made of several.
        found_by: what was at work when the best placement was offered.
        excess: bytes that the best placement is over the devices' memory; infinite before the
            first, and where a group is on a device that cannot run it.
        refines: whether a search is to begin with the best placement so far, and stay near it.
    """

    problem: PlacementProblem
    budget_seconds: float
    progress: Progress = silent
    clock: Clock = time.monotonic
    started: float = field(init=False)
    devices: Ints | None = None
    step_time: float = np.inf
    peak_memory: Ints | None = None
    feasible: bool = False
    evaluations: int = 0
    lower_bound: float = 0.0
    trace: list[tuple[int, float, float]] = field(default_factory=list)
    recent: deque[Ints] = field(default_factory=lambda: deque(maxlen=RECENT))
    learning: list[tuple[float, float]] = field(default_factory=list)
    part: str = ""
    found_by: str = ""
    excess: float = np.inf
    refines: bool = False

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def best(self) -> Ints:
        """(num_groups,) the best placement; there must be one."""
        assert self.devices is not None
        return self.devices

    @property
    def seconds(self) -> float:
        """Seconds since the incumbent was made."""
        return self.clock() - self.started

    @property
    def expired(self) -> bool:
        """Whether the budget is spent."""
        return self.seconds >= self.budget_seconds

    def share_spent(self, max_evaluations: int | None) -> float:
        """How much of the budget is spent, from 0: of placements if these are limited, or time."""
        if max_evaluations is not None:
            return self.evaluations / max_evaluations
        return self.seconds / self.budget_seconds

    def placement(
        self, method: str, seed: int, settings: Settings = NO_SETTINGS, *, interrupted: bool = False
    ) -> Placement:
        """The best placement, and how it was found; there must be one. See `Placement`."""
        assert self.peak_memory is not None
        step_time = self.step_time
        if self.problem.objective != "step-time":
            step_time = simulate(self.problem, self.best).step_time
        return Placement(
            problem=self.problem,
            devices=self.best,
            step_time=step_time,
            peak_memory=self.peak_memory,
            feasible=self.feasible,
            method=method,
            seed=seed,
            settings=dict(settings),
            evaluations=self.evaluations,
            wall_seconds=self.seconds,
            interrupted=interrupted,
            lower_bound=self.lower_bound,
            found_by=self.found_by or method,
            trace=tuple(self.trace),
            learning=tuple(self.learning),
            candidates=tuple(reversed(self.recent)),
        )

    def prove(self, seconds: float) -> None:
        """Takes note that no feasible placement takes less than so many seconds."""
        self.lower_bound = max(self.lower_bound, seconds)

    def offer(self, devices: ArrayLike) -> float:
        """Evaluates one placement; returns its seconds."""
        return float(self.offer_many(np.asarray(devices)[None]).step_time[0])

    def offer_many(self, many: ArrayLike) -> Outcomes:
        """Evaluates (batch, num_groups) placements by the objective, and keeps the best."""
        placements = np.asarray(many)
        outcomes = evaluate(self.problem, placements)
        self.take(placements, outcomes)
        return outcomes

    def take(self, many: Ints, outcomes: Outcomes) -> None:
        """Keeps the best of placements that were evaluated elsewhere, by the objective."""
        self.evaluations += len(many)
        over = overflow(self.problem, outcomes.peak_memory)
        excess = np.where(np.isfinite(outcomes.step_time), over, np.inf)
        for index in np.lexsort((outcomes.step_time, excess))[:1]:
            rank = (float(excess[index]), float(outcomes.step_time[index]))
            if self.devices is None or rank < (self.excess, self.step_time):
                self.devices = np.array(many[index], dtype=np.int64)
                self.peak_memory = np.array(outcomes.peak_memory[index])
                self.excess, self.step_time = rank
                self.feasible = bool(outcomes.feasible[index])
                self.found_by = self.part
                if self.feasible:
                    self.trace.append((self.evaluations, self.seconds, self.step_time))
                    self.recent.append(self.devices)


def coarser(problem: PlacementProblem, max_groups: int) -> tuple[PlacementProblem, Ints]:
    """A problem whose groups are made of a problem's groups.

    Only groups that may be on the same devices are joined, and pins are kept. At most `max_groups`
    are left for each such set of devices.

    Returns:
        The coarser problem, and (num_groups,) the coarser group of each group.
    """
    joined = np.empty(problem.num_groups, dtype=np.int64)
    joined[problem.op_group] = coarsen(problem.graph, problem.op_group, max_groups)
    alike = np.column_stack([joined, problem.allowed])
    group_of = np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)
    pins = {int(group_of[group]): device for group, device in problem.pins.items()}
    grouping = group_of[problem.op_group]
    coarse = PlacementProblem(
        problem.graph, problem.cluster, grouping, pins=pins, order=problem.order,
        objective=problem.objective,
    )  # fmt: skip
    return coarse.with_alone(problem.alone), group_of


class CoarseIncumbent(Incumbent):
    """An incumbent of a coarser problem; all that it takes, the finer one is offered as well.

    Its `group_of` is (num_groups of the finer problem,) the coarser group of each group.
    """

    def __init__(
        self, problem: PlacementProblem, finer: Incumbent, group_of: Ints, budget_seconds: float
    ) -> None:
        super().__init__(problem, budget_seconds, finer.progress, finer.clock)
        self.started = finer.started
        self.group_of = group_of
        self._finer, self._told = finer, 0

    def take(self, many: Ints, outcomes: Outcomes) -> None:
        """Keeps the best of placements, and offers all of them to the finer incumbent."""
        self.tell()
        super().take(many, outcomes)
        self._finer.part = self.part
        self._finer.take(np.asarray(many)[:, self.group_of], outcomes)
        self._told = self.evaluations

    def tell(self) -> None:
        """Tells the finer incumbent how many placements were simulated elsewhere."""
        self._finer.evaluations += self.evaluations - self._told
        self._told = self.evaluations


@contextmanager
def beside_incumbent(incumbent: Incumbent) -> Iterator[CoarseIncumbent]:
    """An incumbent of the same problem in which no device is faster alone than beside others.

    All moves from a single device cost it that advantage: a search would never leave it. The
    incumbent is offered what this one takes, and has to know its single devices before: these take
    longer here.
    """
    problem = incumbent.problem
    even = problem.with_alone(np.maximum(problem.alone, 1.0))
    groups = np.arange(problem.num_groups)
    beside = CoarseIncumbent(even, incumbent, groups, incumbent.budget_seconds)
    beside.refines = incumbent.refines
    if incumbent.devices is not None:
        beside.offer(incumbent.devices)
    try:
        yield beside
    finally:
        beside.tell()


@contextmanager
def coarser_incumbent(
    finer: Incumbent, max_groups: int, share: float = 1.0
) -> Iterator[CoarseIncumbent]:
    """An incumbent of the coarser problem, for a share, from 0 to 1, of what is left of the budget.

    The finer one is offered what it takes, and may be offered others meanwhile.
    """
    problem, group_of = coarser(finer.problem, max_groups)
    now = finer.seconds
    coarse = CoarseIncumbent(problem, finer, group_of, now + share * (finer.budget_seconds - now))
    try:
        yield coarse
    finally:
        coarse.tell()
