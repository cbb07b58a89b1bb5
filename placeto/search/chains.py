"""Annealing: chains over all cores, each in a thread of its own, that exchange what they find."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from placeto.objective import overflow_so_far, rank, search_cost, search_costs
from placeto.problem import PlacementProblem
from placeto.search import moves
from placeto.search.chain import (
    BEST_RANK,
    BEST_STEP_TIME,
    COST,
    EVALUATIONS,
    EVENLY,
    SMALLEST,
    Chain,
    copy,
    count_try,
    same,
)
from placeto.search.incumbent import Incumbent
from placeto.search.load_chain import load_task, run_load_chain
from placeto.search.settings import SearchConfig
from placeto.simulation import Outcomes
from placeto.simulation.kernel import advance
from placeto.simulation.reduction import compiled
from placeto.simulation.state import OPS, Buffers, Compiled, State, begin, buffers, read, view
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner, njit
from placeto.support.units import format_seconds

REPORTS = 100  # lines of progress in the whole budget
Run = Callable[[float, int, np.random.Generator], None]
"""Runs a chain: by a temperature in seconds, so many proposals, with random numbers."""

CHUNK_SECONDS = 0.03  # that chains run between two looks at the clock
CHUNK = 50  # proposals that they make in between where placements are counted
USUAL_CHAINS = 2  # there, so that the result does not depend on the machine
# Of fewer groups, each is a larger share of the step: the search is as much hotter.
TEMPERATE_GROUPS = 100
LOOKS = 9  # at a simulation on its way, after as many ops each
# How far behind it may fall before it is given up, as a share of the step. Of moves from good
# placements of the families' validation graphs, this gives up one in a thousand of those that would
# have passed, and halves the work.
PATIENCE = 0.01
SPARED = 0.1  # the share of proposals that may fall behind: in small graphs more come from behind


class ChainTask(NamedTuple):
    """What all chains work on."""

    compiled: Compiled
    space: moves.Neighbourhood
    memory_limit: Ints  # (num_devices,) bytes
    whole: int  # bytes of all groups, see `search_cost`
    scale: float  # s, in which memory over the limit is reckoned


def new_chain(incumbent: Incumbent, scale: float) -> Chain:
    """A chain that starts from the best placement so far."""
    devices, peak, step_time = incumbent.best, incumbent.peak_memory, incumbent.step_time
    assert peak is not None
    numbers = np.array([_cost(incumbent, scale), rank(step_time, incumbent.excess), step_time, 0.0])
    tried, gained = np.zeros(moves.NUM_MOVES), np.zeros(moves.NUM_MOVES)
    return Chain(devices.copy(), devices.copy(), peak.copy(), numbers, tried, gained)


def anneal(incumbent: Incumbent, rng: np.random.Generator, config: SearchConfig) -> None:
    """Anneals from the best placement so far, which there must be, until the budget ends.

    Each chain is a simulated annealing (Kirkpatrick, Gelatt & Vecchi 1983) of its own, by moves
    drawn evenly, more of the kinds that paid. Now and then all go on from the best that any has
    found. Progress is told, and the clock looked at, in between.
    """
    problem = incumbent.problem
    space = moves.neighbourhood(problem)
    if len(space.movable) <= 1:  # every placement is among the starts
        return
    scale = incumbent.step_time or 1.0
    heat = scale * max(TEMPERATE_GROUPS / problem.num_groups, 1.0)
    count = config.chains or (get_num_threads() if config.max_evaluations is None else USUAL_CHAINS)
    chains = [new_chain(incumbent, scale) for _ in range(count)]
    runs: list[Run]
    if problem.objective == "throughput":
        loads = load_task(problem, space, scale)
        runs = [partial(run_load_chain, loads, chain) for chain in chains]
    else:
        task = chain_task(problem, space, scale)
        runs = [partial(run_chain, task, chain, buffers(task.compiled, 2)) for chain in chains]
    draws = rng.spawn(count)
    limit = config.max_evaluations
    begun, evaluations = incumbent.share_spent(limit), incumbent.evaluations
    proposals, exchanges, reports = 1, 0, 0
    with ThreadPoolExecutor(count) as pool:
        while (spent := incumbent.share_spent(limit)) < 1 and not incumbent.expired:
            done = (spent - begun) / (1 - begun)
            if done * (config.exchanges + 1) >= exchanges + 1:
                exchanges += 1
                for chain in chains:
                    chain.present[:] = incumbent.best
                    chain.numbers[COST] = _cost(incumbent, scale)
            if limit is not None:
                left = limit - incumbent.evaluations
                proposals = min(CHUNK, -(-left // count))
            made = incumbent.evaluations - evaluations
            placements = made / done / problem.num_groups if done > 0 else 0.0
            temperature = heat * config.temperature(done, placements)
            began = time.perf_counter()
            running = [
                pool.submit(run, temperature, proposals, own)
                for run, own in zip(runs, draws, strict=True)
            ]
            for future in running:
                future.result()
            pace = CHUNK_SECONDS / max(time.perf_counter() - began, 1e-6)
            proposals = max(1, int(proposals * min(pace, 2.0)))
            for chain in chains:
                _take(incumbent, chain)
            if spent * REPORTS >= reports:
                reports = int(spent * REPORTS) + 1
                incumbent.progress(
                    f"search in {problem.num_groups} groups: {spent:.0%}, "
                    f"best {format_seconds(incumbent.step_time)}"
                )


def chain_task(problem: PlacementProblem, space: moves.Neighbourhood, scale: float) -> ChainTask:
    """What chains of a problem work on."""
    whole = max(int(problem.group_memory.sum()), 1)
    return ChainTask(compiled(problem).compiled, space, problem.memory_limit, whole, scale)


def _take(incumbent: Incumbent, chain: Chain) -> None:
    """Offers what a chain has found since the last time."""
    count = int(chain.numbers[EVALUATIONS])
    chain.numbers[EVALUATIONS] = 0
    if chain.numbers[BEST_RANK] < rank(incumbent.step_time, incumbent.excess):
        outcomes = Outcomes(
            step_time=chain.numbers[[BEST_STEP_TIME]],
            peak_memory=chain.best_peak[None],
            group_start=np.empty((1, 0)),
            feasible=np.array([(chain.best_peak <= incumbent.problem.memory_limit).all()]),
        )
        incumbent.take(chain.best[None], outcomes)
        count -= 1
    incumbent.evaluations += count


def _cost(incumbent: Incumbent, scale: float) -> float:
    assert incumbent.peak_memory is not None
    step_time = np.float64(incumbent.step_time)
    return float(search_costs(incumbent.problem, step_time, incumbent.peak_memory, scale))


@njit(cache=True, nogil=True)
def run_chain(
    task: ChainTask,
    chain: Chain,
    states: Buffers,
    temperature: float,
    proposals: int,
    rng: np.random.Generator,
) -> None:
    """Makes proposals and accepts some of them by the rule of Metropolis et al. (1953).

    The rule's draw comes first, so that what will hardly pass is rejected early (Solonen et al.
    2012), before its simulation is at its end. The buffers are of two simulations: of the present
    placement and of what is proposed. The temperature is in seconds.
    """
    c, space, memory_limit, whole, scale = task
    num_groups, num_devices = space.allowed.shape
    numbers = chain.numbers
    s, t = view(c, states[0]), view(c, states[1])
    peak = np.empty(num_devices, np.int64)
    nothing = np.empty(0)
    # When the present placement, and what is proposed, have so many ops behind them.
    clocks, others = np.empty(LOOKS), np.full(LOOKS, np.inf)
    candidate = np.empty(num_groups, np.int64)
    raced_cost(c, chain.present, s, memory_limit, scale, whole, np.inf, others, 0.0, clocks)
    step_time = read(s, peak, nothing)
    for _ in range(proposals):
        kind = moves.draw_kind(chain.tried, chain.gained, EVENLY, rng)
        copy(chain.present, candidate)
        moves.propose(space, candidate, kind, rng)
        if same(candidate, chain.present):
            continue
        limit = numbers[COST] - temperature * np.log(max(rng.random(), SMALLEST))
        behind = limit - step_time + PATIENCE * step_time
        if rng.random() < SPARED:
            behind = np.inf
        cost = raced_cost(
            c, candidate, t, memory_limit, scale, whole, limit, clocks, behind, others
        )
        count_try(chain, kind)
        if cost > limit:
            continue
        if cost < numbers[COST]:
            chain.gained[kind] += 1
        s, t = t, s
        clocks, others = others, clocks
        step_time = read(s, peak, nothing)
        numbers[COST] = cost
        copy(candidate, chain.present)
        found = rank(step_time, overflow_so_far(s, memory_limit))
        if found < numbers[BEST_RANK]:
            numbers[BEST_RANK], numbers[BEST_STEP_TIME] = found, step_time
            copy(candidate, chain.best)
            copy(peak, chain.best_peak)


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
    it will hardly end below: by more than `behind` seconds. Else `s` is at the end of the step.
    For `scale` and `whole` see `search_cost`.

    Two arrays, (LOOKS,) in seconds, have when so many ops are behind: `pace` of the other, infinite
    where nothing is given up, and `clocks` of this one, filled so far as it gets.
    """
    num_kept = len(c.missing)
    begin(c, devices, s)
    for look in range(LOOKS):
        advance(c, s, num_kept * (LOOKS - look) // (LOOKS + 1), OPS)
        clocks[look] = s.status[0].now
        if clocks[look] > pace[look] + behind:
            return np.inf
        if search_cost(clocks[look], overflow_so_far(s, memory_limit), scale, whole) > limit:
            return np.inf
    advance(c, s, 0, OPS)
    cost = search_cost(s.status[0].now, overflow_so_far(s, memory_limit), scale, whole)
    return cost if cost <= limit else np.inf
