"""One chain of the search, compiled: propose, simulate, accept."""

from typing import NamedTuple

import numpy as np
from numba import njit

from placeto.graph import Floats, Ints
from placeto.placers.annealing.moves import NUM_MOVES, Neighbourhood, propose
from placeto.placers.annealing.search import ANY_EXCESS, WHOLE_EXCESS
from placeto.placers.auto.cutoff import NOT_STARTED, bytes_over, least_step_time
from placeto.placers.auto.proposals import (
    GUIDED,
    NUM_KINDS,
    draw_kind,
    forget,
    no_opinion,
    propose_guided,
)
from placeto.simulation.compiled import Compiled, Int32s
from placeto.simulation.kernel import advance
from placeto.simulation.run import read
from placeto.simulation.state import OPS, State, begin, view
from placeto.training.sweeps import Guide

# Columns of `Chain.numbers`: costs of the present and the best placement, the latter's step time,
# placements simulated.
COST, BEST_COST, BEST_STEP_TIME, EVALUATIONS = range(4)
# How often a simulation is looked at on its way, and what may be lost in adding up in another
# order, as a share of the step.
SLICES, ROUNDING = 3, 1e-9
EVENLY = 0.3  # the share of proposals whose kind is drawn evenly
MEMORY = 500.0  # proposals of a kind after which earlier ones count half
SMALLEST = 1e-300


class Chain(NamedTuple):
    """Where a chain stands."""

    present: Ints  # (num_groups,) devices
    best: Ints  # (num_groups,) the cheapest placement that it has met
    best_peak: Ints  # (num_devices,) bytes of that
    numbers: Floats  # (4,)
    tried: Floats  # (NUM_KINDS,) how often each kind was proposed; earlier ones count less
    gained: Floats  # (NUM_KINDS,) how often that was accepted and cheaper, likewise


class Task(NamedTuple):
    """What all chains work on."""

    compiled: Compiled
    guide: Guide  # its table is empty where there is no policy
    space: Neighbourhood
    after: Floats  # (num_kept,) s, see `paths_after`
    scale: float  # s, in which memory over the limit is reckoned


def new_chain(devices: Ints, peak: Ints, step_time: float, cost: float) -> Chain:
    """A chain that starts from a placement."""
    numbers = np.array([cost, cost, step_time, 0.0])
    return Chain(
        devices.copy(), devices.copy(), peak.copy(), numbers, np.zeros(NUM_KINDS),
        np.zeros(NUM_KINDS),
    )  # fmt: skip


def go_on_from(chain: Chain, devices: Ints, cost: float) -> None:
    """Gives a chain another present placement."""
    chain.present[:] = devices
    chain.numbers[COST] = cost


@njit(cache=True, nogil=True)
def run_chain(
    task: Task,
    chain: Chain,
    ints: Int32s,
    longs: Ints,
    reals: Floats,
    temperature: float,
    proposals: int,
    rng: np.random.Generator,
) -> None:  # pragma: no cover
    """Makes proposals and accepts some of them by the rule of Metropolis et al. (1953).

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
    memory_limit = task.guide.wiring.memory_limit
    whole = max(task.guide.wiring.group_memory.sum(), 1)
    num_groups, num_devices = space.allowed.shape
    kinds = NUM_KINDS if len(task.guide.table) else NUM_MOVES
    numbers = chain.numbers
    s = view(c, ints[0], longs[0], reals[0])
    t = view(c, ints[1], longs[1], reals[1])
    peak = np.empty(num_devices, np.int64)
    left = np.empty(num_devices)
    nothing = np.empty(0)
    candidate = np.empty(num_groups, np.int64)
    opinion = no_opinion(num_groups, num_devices)
    begin(c, chain.present, s)
    advance(c, s, 0, OPS)
    step_time = read(s, peak, nothing)
    for _ in range(proposals):
        kind = draw_kind(chain.tried, chain.gained, kinds, EVENLY, rng)
        candidate[:] = chain.present
        if kind < NUM_MOVES:
            propose(space, candidate, kind, rng)
        else:
            propose_guided(
                c, task.guide, space, s, step_time, peak, opinion, GUIDED[kind - NUM_MOVES],
                candidate, rng,
            )  # fmt: skip
        if not differs(candidate, chain.present):
            continue
        # The rule's draw comes first: what cannot pass is not simulated to its end.
        limit = numbers[COST] - temperature * np.log(max(rng.random(), SMALLEST))
        cost = simulated_cost(
            c, candidate, t, task.after, left, memory_limit, scale, whole, limit
        )  # fmt: skip
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
        step_time = read(s, peak, nothing)
        forget(opinion)
        numbers[COST] = cost
        chain.present[:] = candidate
        if cost < numbers[BEST_COST]:
            numbers[BEST_COST], numbers[BEST_STEP_TIME] = cost, step_time
            chain.best[:] = candidate
            chain.best_peak[:] = peak


@njit(cache=True)
def differs(devices: Ints, others: Ints) -> bool:  # pragma: no cover
    """Whether two placements are not the same."""
    for group in range(len(devices)):
        if devices[group] != others[group]:
            return True
    return False


@njit(cache=True)
def simulated_cost(
    c: Compiled,
    devices: Ints,
    s: State,
    after: Floats,
    left: Floats,
    memory_limit: Ints,
    scale: float,
    whole: int,
    limit: float,
) -> float:  # pragma: no cover
    """What a placement costs, as `placement_costs` has it; infinite if above a limit.

    The simulation ends as soon as it is certain to be above the limit.

    Args:
        c: the compiled problem.
        devices: (num_groups,) the placement.
        s: where it is simulated; at the end of the step unless the cost is infinite.
        after: by `paths_after`.
        left: (num_devices,) overwritten.
        memory_limit: (num_devices,) bytes.
        scale: seconds that memory over the limit is reckoned in.
        whole: bytes of the graph.
        limit: seconds.
    """
    num_kept = len(c.missing)
    begin(c, devices, s)
    s.op_start[:] = NOT_STARTED
    for number in range(1, SLICES):
        advance(c, s, num_kept * (SLICES - number) // SLICES, OPS)
        least = least_step_time(c, s, after, left)
        if _cost(least, s, memory_limit, scale, whole) > limit * (1 + ROUNDING):
            return np.inf
    advance(c, s, 0, OPS)
    cost = _cost(s.clock[0], s, memory_limit, scale, whole)
    return cost if cost <= limit else np.inf


@njit(cache=True)
def _cost(
    seconds: float, s: State, memory_limit: Ints, scale: float, whole: int
) -> float:  # pragma: no cover
    over = bytes_over(s, memory_limit)
    if over > 0:
        return seconds + scale * (ANY_EXCESS + WHOLE_EXCESS * over / whole)
    return seconds
