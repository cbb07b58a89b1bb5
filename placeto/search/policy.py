"""A trained policy at play: sweeps over the groups of graphs that it has never seen."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
from numpy.random import Generator

from placeto.envs.features.groups import group_graph
from placeto.envs.features.pairs import group_index
from placeto.heuristics.initial import random_placement
from placeto.models.placeto.play import CompiledPolicy, Sweeps, play
from placeto.models.placeto.pools import kin_of, no_kin
from placeto.models.placeto.scoring import embedding_of, weights_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.models.placeto.stored import read_placeto
from placeto.models.stored import StoredPolicy
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent, coarser_incumbent
from placeto.support.arrays import Floats, Ints

MEMORY_PENALTY = 2.0  # s a GiB
# Of an episode's sweeps, by how much the devices are drawn: 1 as likely as the policy has them.
ONE_SWEEP, FOUR_SWEEPS = (1.0,), (1.0, 0.5, 0.25, 0.0)
STRETCHES = 60  # of a placement, one of which at most is disturbed
AROUND = 3  # groups on both sides of a stretch that are gone through with it, for one of its own

ReadyFor = Callable[[PlacementProblem], CompiledPolicy]  # makes a policy ready for a problem
Refine = Callable[[ReadyFor], None]  # see `few_groups`

stored = cache(read_placeto)  # a policy, read once


def compiled_policy(policy: StoredPolicy, problem: PlacementProblem) -> CompiledPolicy:
    """A stored policy of Placeto's made ready for a problem."""
    config, graph = policy.shape(PlacetoNetworkConfig), group_graph(problem)
    table, affinity = embedding_of(policy.arrays, graph, config)
    kin = kin_of(problem, graph) if config.num_heads else no_kin()
    return CompiledPolicy(
        group_index(problem), weights_of(policy.arrays, config), table, affinity, kin
    )


@contextmanager
def few_groups(incumbent: Incumbent, coarse_groups: int) -> Iterator[tuple[Incumbent, Refine]]:
    """What a policy is to place first, and what refines it: policies have learned with few groups.

    Where there are more than `coarse_groups`, they place several together, as multilevel
    partitioners do (Karypis & Kumar 1998); the best such placement is refined by greedy sweeps over
    the groups as they are, if the budget is enough for one.

    Yields:
        An incumbent with few groups, and what refines its best placement, where that is a new one,
        by a policy that it makes ready: nothing to do where the groups are few already.
    """
    if incumbent.problem.num_groups <= coarse_groups:
        yield incumbent, lambda ready_for: None
        return
    refined: Ints | None = None
    with coarser_incumbent(incumbent, coarse_groups) as coarse:

        def refine(ready_for: ReadyFor) -> None:
            nonlocal refined
            if coarse.devices is refined:
                return
            refined = coarse.best
            start = refined[coarse.group_of]
            incumbent.offer(start)  # the first one takes longer: the problem is made ready
            began = incumbent.seconds
            incumbent.offer(start)
            sweep = incumbent.problem.num_groups * (incumbent.seconds - began)
            if incumbent.seconds + sweep <= incumbent.budget_seconds:
                offer_greedy(incumbent, ready_for(incumbent.problem), start)

        yield coarse, refine


def offer_greedy(incumbent: Incumbent, ready: CompiledPolicy, start: Ints) -> None:
    """Offers what greedy sweeps lead to, each from where the last ended, while they improve."""
    problem = incumbent.problem
    quiet = np.zeros((problem.num_groups, 1, problem.num_devices))
    least, later = np.inf, False
    while True:
        played = offer_played(incumbent, ready, start[None], quiet, later)
        cost = float(played.best_cost.min())
        if cost >= least or incumbent.expired:
            return
        start, least, later = played.best[0], cost, True


def offer_drawn(
    incumbent: Incumbent,
    ready: CompiledPolicy,
    starts: Ints,
    rng: Generator,
    draws: Sequence[float] = ONE_SWEEP,
    later: bool = False,
) -> None:
    """Offers the best placements of episodes whose devices are drawn.

    They begin at (episodes, num_groups) starts; `later` says that these are what a sweep left.
    Every sweep but an episode's first begins with the best placement of the one before. No more
    are begun once the budget is spent. `draws` is what the noise of each sweep is scaled by.
    """
    problem = incumbent.problem
    for scale in draws:
        noise = scale * rng.gumbel(size=(problem.num_groups, len(starts), problem.num_devices))
        starts, later = offer_played(incumbent, ready, starts, noise, later).best, True
        if incumbent.expired:
            return


def scattered(problem: PlacementProblem, start: Ints, rng: Generator, samples: int) -> Ints:
    """(samples, num_groups) in turn a placement and a random one."""
    starts = [random_placement(problem, rng) if row % 2 else start for row in range(samples)]
    return np.stack(starts)


def offer_disturbed(
    incumbent: Incumbent, ready: CompiledPolicy, rng: Generator, samples: int
) -> None:
    """Offers what greedy sweeps about a stretch of the best placement lead to, moved elsewhere."""
    starts, part = disturbed(incumbent.problem, incumbent.best, rng, samples)
    quiet = np.zeros((len(part), samples, incumbent.problem.num_devices))
    offer_played(incumbent, ready, starts, quiet, True, part)


def disturbed(
    problem: PlacementProblem, devices: Ints, rng: Generator, samples: int
) -> tuple[Ints, Ints]:
    """A placement, of which a stretch of the groups is moved elsewhere in several ways.

    In turn it goes to one device, or its devices change places.

    Returns:
        (samples, num_groups) devices, and the groups of the stretch and of what is around it, in
        topological order.
    """
    groups, count = problem.num_groups, problem.num_devices
    length = int(rng.integers(1, max(groups // STRETCHES, 1) + 1))
    begin = int(rng.integers(groups - length + 1))
    stretch = problem.group_order[begin : begin + length]
    rows = np.tile(devices, (samples, 1))
    for number, row in enumerate(rows):
        there = rng.permutation(count)[row[stretch]] if number % 2 else int(rng.integers(count))
        row[stretch] = np.where(problem.allowed[stretch, there], there, row[stretch])
    around = AROUND * length
    return rows, problem.group_order[max(begin - around, 0) : begin + length + around]


def offer_played(
    incumbent: Incumbent,
    ready: CompiledPolicy,
    starts: Ints,
    noise: Floats,
    decided: bool,
    part: Ints | None = None,
) -> Sweeps:
    """Plays a sweep over all groups or a part, and offers the best placements on the way."""
    played = play(
        incumbent.problem, ready, starts, noise,
        part=part, memory_penalty=MEMORY_PENALTY, decided=decided, remember=False,
    )  # fmt: skip
    incumbent.offer_many(played.best)
    incumbent.evaluations += played.unreported
    return played
