"""One chain of the search, compiled: propose, simulate, accept."""

from typing import NamedTuple

import numpy as np

from placeto.models.placeto.play import CompiledPolicy
from placeto.objective import overflow_so_far, rank, search_cost
from placeto.search.moves import NUM_MOVES, Neighbourhood, propose
from placeto.search.proposals import (
    GUIDED,
    NUM_KINDS,
    draw_kind,
    forget,
    no_opinion,
    propose_guided,
)
from placeto.simulation.compiled import Compiled
from placeto.simulation.kernel import advance
from placeto.simulation.run import read
from placeto.simulation.state import OPS, State, begin, view
from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.jit import inner, njit

# Columns of `Chain.numbers`: what the present placement costs, the best one's rank and step time,
# placements simulated.
COST, BEST_RANK, BEST_STEP_TIME, EVALUATIONS = range(4)
LOOKS = 9  # at a simulation on its way, after as many ops each
# How far behind it may fall before it is given up, as a share of the step. Of moves from good
# placements of the families' validation graphs, this gives up one in a thousand of those that would
# have passed, and halves the work.
PATIENCE = 0.01
SPARED = 0.1  # the share of proposals that may fall behind: in small graphs more come from behind
EVENLY = 0.3  # the share of proposals whose kind is drawn evenly
MEMORY = 500.0  # proposals of a kind after which earlier ones count half
SMALLEST = 1e-300


class Chain(NamedTuple):
    """Where a chain stands."""

    present: Ints  # (num_groups,) devices
    best: Ints  # (num_groups,) the placement of lowest rank that it has accepted
    best_peak: Ints  # (num_devices,) bytes of that
    numbers: Floats  # (4,)
    tried: Floats  # (NUM_KINDS,) how often each kind was proposed; earlier ones count less
    gained: Floats  # (NUM_KINDS,) how often that was accepted and cheaper, likewise


class ChainTask(NamedTuple):
    """What all chains work on."""

    compiled: Compiled
    guide: CompiledPolicy  # its table is empty where there is no policy
    space: Neighbourhood
    scale: float  # s, in which memory over the limit is reckoned


def new_chain(devices: Ints, peak: Ints, step_time: float, cost: float, over: float) -> Chain:
    """A chain that starts from a placement of so many seconds, which is so many bytes over."""
    numbers = np.array([cost, rank(step_time, over), step_time, 0.0])
    tried, gained = np.zeros(NUM_KINDS), np.zeros(NUM_KINDS)
    return Chain(devices.copy(), devices.copy(), peak.copy(), numbers, tried, gained)


def go_on_from(chain: Chain, devices: Ints, cost: float) -> None:
    """Gives a chain another present placement."""
    chain.present[:] = devices
    chain.numbers[COST] = cost


@njit(cache=True, nogil=True)
def run_chain(
    task: ChainTask,
    chain: Chain,
    ints: Int32s,
    longs: Ints,
    reals: Floats,
    temperature: float,
    proposals: int,
    rng: np.random.Generator,
) -> None:
    """Makes proposals and accepts some of them by the rule of Metropolis et al. (1953).

    The rule's draw comes first, so that what will hardly pass is rejected early (Solonen et al.
    2012), before its simulation is at its end.

    Args:
        task: the problem.
        chain: changed.
        ints: (2, …) buffers of two simulations: of the present placement and of what is proposed.
        longs: likewise.
        reals: likewise.
        temperature: seconds.
        proposals: how many.
        rng: draws.
    """
    c, space, scale = task.compiled, task.space, task.scale
    memory_limit = task.guide.group_index.memory_limit
    whole = max(task.guide.group_index.group_memory.sum(), 1)
    num_groups, num_devices = space.allowed.shape
    kinds = NUM_KINDS if len(task.guide.table) else NUM_MOVES
    numbers = chain.numbers
    s = view(c, ints[0], longs[0], reals[0])
    t = view(c, ints[1], longs[1], reals[1])
    peak = np.empty(num_devices, np.int64)
    nothing = np.empty(0)
    # When the present placement, and what is proposed, have so many ops behind them.
    clocks, others = np.empty(LOOKS), np.full(LOOKS, np.inf)
    candidate = np.empty(num_groups, np.int64)
    opinion = no_opinion(num_groups, num_devices)
    raced_cost(c, chain.present, s, memory_limit, scale, whole, np.inf, others, 0.0, clocks)
    step_time = read(s, peak, nothing)
    for _ in range(proposals):
        kind = draw_kind(chain.tried, chain.gained, kinds, EVENLY, rng)
        copy(chain.present, candidate)
        if kind < NUM_MOVES:
            propose(space, candidate, kind, rng)
        else:
            propose_guided(
                c, task.guide, space, s, step_time, peak, opinion, GUIDED[kind - NUM_MOVES],
                candidate, rng,
            )  # fmt: skip
        if same(candidate, chain.present):
            continue
        limit = numbers[COST] - temperature * np.log(max(rng.random(), SMALLEST))
        behind = limit - step_time + PATIENCE * step_time
        if rng.random() < SPARED:
            behind = np.inf
        cost = raced_cost(
            c, candidate, t, memory_limit, scale, whole, limit, clocks, behind, others
        )
        numbers[EVALUATIONS] += 1
        chain.tried[kind] += 1
        if chain.tried[kind] > MEMORY:
            chain.tried[kind] /= 2
            chain.gained[kind] /= 2
        if cost > limit:
            continue
        if cost < numbers[COST]:
            chain.gained[kind] += 1
        s, t = t, s
        clocks, others = others, clocks
        step_time = read(s, peak, nothing)
        forget(opinion)
        numbers[COST] = cost
        copy(candidate, chain.present)
        found = rank(step_time, overflow_so_far(s, memory_limit))
        if found < numbers[BEST_RANK]:
            numbers[BEST_RANK], numbers[BEST_STEP_TIME] = found, step_time
            copy(candidate, chain.best)
            copy(peak, chain.best_peak)


@inner(cache=True)
def copy(source: Ints, target: Ints) -> None:
    """Copies numbers; numba's slices take seconds to compile, for what they say if sizes differ."""
    for index in range(len(source)):
        target[index] = source[index]


@inner(cache=True)
def same(one: Ints, other: Ints) -> bool:
    """Whether all numbers are the same."""
    for index in range(len(one)):  # noqa: SIM110, numba's `all` needs a generator
        if one[index] != other[index]:
            return False
    return True


@inner(cache=True)
def raced_cost(
    c: Compiled,
    devices: Ints,
    s: State,
    memory_limit: Ints,
    scale: float,
    whole: int,
    limit: float,
    pace: Floats,
    behind: float,
    clocks: Floats,
) -> float:
    """What a placement costs, as `search_cost` has it; infinite if that is above a limit.

    The simulation is given up as soon as it is above the limit, or so far behind another one that
    it will hardly end below.

    Args:
        c: the compiled problem.
        devices: (num_groups,) the placement.
        s: where it is simulated; at the end of the step unless the cost is infinite.
        memory_limit: (num_devices,) bytes.
        scale: seconds that memory over the limit is reckoned in.
        whole: bytes of the graph.
        limit: seconds.
        pace: (LOOKS,) when the other had as many ops behind it; infinite where nothing is given up.
        behind: seconds that this one may be later.
        clocks: (LOOKS,) filled with when this one has, so far as it gets.
    """
    num_kept = len(c.missing)
    begin(c, devices, s)
    for look in range(LOOKS):
        advance(c, s, num_kept * (LOOKS - look) // (LOOKS + 1), OPS)
        clocks[look] = s.clock[0]
        if clocks[look] > pace[look] + behind:
            return np.inf
        if search_cost(clocks[look], overflow_so_far(s, memory_limit), scale, whole) > limit:
            return np.inf
    advance(c, s, 0, OPS)
    cost = search_cost(s.clock[0], overflow_so_far(s, memory_limit), scale, whole)
    return cost if cost <= limit else np.inf
