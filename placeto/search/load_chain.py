"""A chain of annealing that makes the busiest resource of a pipeline less busy."""

from typing import NamedTuple

import numpy as np

from placeto.objective import rank, search_cost
from placeto.problem import PlacementProblem
from placeto.search import moves
from placeto.search.chain import (
    BEST_RANK,
    BEST_STEP_TIME,
    COST,
    EVENLY,
    SMALLEST,
    Chain,
    copy,
    count_try,
)
from placeto.simulation.loads import Loads, add_flow, add_up, loads_of, num_resources
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.jit import inner, njit

DOUBLINGS = 3  # of the exponent of the norm that stands for the maximum


class LoadTask(NamedTuple):
    """What all chains work on."""

    loads: Loads
    space: moves.Neighbourhood
    memory_limit: Ints  # (num_devices,) bytes
    scale: float  # s, in which memory over the limit is reckoned


def load_task(problem: PlacementProblem, space: moves.Neighbourhood, scale: float) -> LoadTask:
    """What chains of a problem work on."""
    return LoadTask(loads_of(problem), space, problem.memory_limit, scale)


class _Sums(NamedTuple):
    """Loads of a placement, and what it takes to change them along with it."""

    loads: Floats  # (num_resources,) s
    memory: Ints  # (num_devices,) bytes
    seen: Bools  # see `add_up`
    marked: Bools  # (num_flows,) all false
    touched: Ints  # (num_flows,) room for flows


@njit(cache=True, nogil=True)
def run_load_chain(
    task: LoadTask, chain: Chain, temperature: float, proposals: int, rng: np.random.Generator
) -> None:
    """Makes proposals and accepts some of them by the rule of Metropolis et al. (1953).

    What a placement costs is the 8-norm of its loads, and for memory as in `search_cost`: the
    maximum alone does not tell moves apart that leave the busiest resource as it is. The best is
    kept by its maximum. The temperature is in seconds.
    """
    t, present = task.loads, chain.present
    candidate, sums = present.copy(), _no_sums(t)
    loads, memory = sums.loads.copy(), sums.memory.copy()  # before a proposal
    whole = max(t.memory.sum(), 1)
    add_up(t, present, sums.seen, sums.loads)
    for group in range(len(present)):
        sums.memory[present[group]] += t.memory[group]
    cost = search_cost(_norm(sums.loads), _over(task, sums.memory), task.scale, whole)
    for _ in range(proposals):
        kind = moves.draw_kind(chain.tried, chain.gained, EVENLY, rng)
        moves.propose(task.space, candidate, kind, rng)
        copy(sums.loads, loads)
        copy(sums.memory, memory)
        if not _change(t, present, candidate, sums):
            continue
        count_try(chain, kind)
        over = _over(task, sums.memory)
        found = search_cost(_norm(sums.loads), over, task.scale, whole)
        if rank(sums.loads.max(), over) < chain.numbers[BEST_RANK]:
            sums.loads[:] = 0  # sums of many changes are a little off
            add_up(t, candidate, sums.seen, sums.loads)
            seconds = sums.loads.max()
            if rank(seconds, over) < chain.numbers[BEST_RANK]:
                chain.numbers[BEST_RANK] = rank(seconds, over)
                chain.numbers[BEST_STEP_TIME] = seconds
                copy(candidate, chain.best)
                copy(sums.memory, chain.best_peak)
        if found > cost - temperature * np.log(max(rng.random(), SMALLEST)):
            copy(loads, sums.loads)
            copy(memory, sums.memory)
            copy(present, candidate)
            continue
        if found < cost:
            chain.gained[kind] += 1
        cost = found
        copy(candidate, present)
    chain.numbers[COST] = cost


@inner(cache=True)
def _no_sums(t: Loads) -> _Sums:
    num_flows, num_devices = len(t.sender), t.work.shape[1]
    return _Sums(
        np.zeros(num_resources(t)),
        np.zeros(num_devices, np.int64),
        np.zeros(num_devices + len(t.kind), np.bool_),
        np.zeros(num_flows, np.bool_),
        np.empty(num_flows, np.int64),
    )


@inner(cache=True)
def _change(t: Loads, before: Ints, after: Ints, sums: _Sums) -> bool:
    """Makes sums of one placement those of another; whether the two differ."""
    changed, number = False, 0
    for group in range(len(before)):
        here, there = before[group], after[group]
        if here == there:
            continue
        changed = True
        sums.loads[here] -= t.work[group, here]
        sums.loads[there] += t.work[group, there]
        sums.memory[here] -= t.memory[group]
        sums.memory[there] += t.memory[group]
        for position in range(t.flow_start[group], t.flow_start[group + 1]):
            flow = t.flows[position]
            if not sums.marked[flow]:
                sums.marked[flow] = True
                sums.touched[number] = flow
                number += 1
    for index in range(number):
        flow = sums.touched[index]
        sums.marked[flow] = False
        add_flow(t, before, flow, -1.0, sums.seen, sums.loads)
        add_flow(t, after, flow, 1.0, sums.seen, sums.loads)
    return changed


@inner(cache=True)
def _over(task: LoadTask, memory: Ints) -> float:
    over = 0.0
    for device in range(len(memory)):
        over += max(memory[device] - task.memory_limit[device], 0)
    return over


@inner(cache=True)
def _norm(loads: Floats) -> float:
    """The norm of the loads, of exponent 2 to the power of `DOUBLINGS`."""
    most, total = max(loads.max(), SMALLEST), 0.0
    for load in loads:
        part = max(load / most, 0.0)
        for _ in range(DOUBLINGS):
            part *= part
        total += part
    return float(most * total ** (0.5**DOUBLINGS))
