"""Episodes in compiled code: sweeps over the groups, many at once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import get_num_threads

from placeto.envs.features.pairs import (
    BINS,
    GROUP_FEATURES,
    PAIR_FEATURES,
    TINY,
    GroupIndex,
    busy_profile,
    observe,
)
from placeto.models.agent import Played
from placeto.models.placeto.pools import SUMS, Affinity, Kin, columns_of, pool, start_of
from placeto.models.placeto.scoring import Weights, score
from placeto.objective import penalised
from placeto.problem import PlacementProblem
from placeto.simulation.kernel import advance
from placeto.simulation.reduction import compiled
from placeto.simulation.state import OPS, Buffers, Compiled, begin, borrowed, read, view
from placeto.support.arrays import Bools, Features, Floats, Int16s, Ints
from placeto.support.jit import inner, njit

NOT_FORCED: Ints = np.empty((0, 0), dtype=np.int64)


class CompiledPolicy(NamedTuple):
    """A policy and all that it needs to know of a problem, as compiled code takes it."""

    group_index: GroupIndex
    weights: Weights
    table: Features  # (num_groups, embedding)
    affinity: Affinity
    kin: Kin


class Filled(NamedTuple):
    """What playing fills in; see `Sweeps`. What is seen is empty if it is not wanted."""

    devices: Ints  # the first placements; changed into the last
    pairs: Features
    groups: Features
    open: Bools
    placed: Int16s
    visited: Bools
    starts: Features
    actions: Ints
    costs: Floats  # (steps + 1, episodes) s
    best: Ints
    step_time: Floats
    simulated: Ints  # raised by the placements simulated


@dataclass(frozen=True, eq=False)
class Sweeps(Played):
    """What happened in some episodes.

    Rewards are falls of the penalised step time, as shares of the first one.
    """

    AXES: ClassVar = {
        **Played.AXES,
        **dict.fromkeys(("pairs", "groups", "open", "placed", "visited", "starts", "actions"), 1),
        **dict.fromkeys(("best", "simulated"), 0),
    }

    current: Ints  # (steps,) the groups
    pairs: Features  # (steps, episodes, num_devices, columns) what was seen of each device
    groups: Features  # (steps, episodes, GROUP_FEATURES) what was seen of the group
    open: Bools  # (steps, episodes, num_devices) which devices could be chosen
    placed: Int16s  # (steps, episodes, num_groups) the devices of all groups; see `starts`
    visited: Bools  # (steps, episodes, num_groups) whose devices were chosen before; see `starts`
    starts: Features  # (steps, episodes, num_groups) shares of the step; no groups without pools
    actions: Ints  # (steps, episodes) the devices chosen
    best: Ints  # (episodes, num_groups) the placements of `best_cost`
    simulated: Ints  # (episodes,) how many placements were simulated

    @property
    def unreported(self) -> int:
        """Placements that were simulated beyond the best ones, which a visitor is told of."""
        return int(self.simulated.sum()) - len(self.best)


def play(
    problem: PlacementProblem,
    guide: CompiledPolicy,
    start: Ints,
    noise: Floats,
    *,
    memory_penalty: float,
    part: Ints | None = None,
    decided: bool = False,
    forced: Ints = NOT_FORCED,
    remember: bool = True,
) -> Sweeps:
    """Goes through the groups of some placements, in topological order, once or several times.

    Args:
        problem: what is placed.
        guide: chooses the devices.
        start: (episodes, num_groups) where the episodes start.
        noise: (steps, episodes, num_devices) what the scores are raised by: 0 to take the most
            likely device, Gumbel noise to draw one; `steps` is a multiple of the groups.
        memory_penalty: seconds a GiB over a device's memory.
        part: the groups that it goes through; None for all.
        decided: whether the start is what an earlier sweep left, and not where the first begins.
        forced: (episodes, num_groups) devices that are taken whatever the scores; none if empty.
        remember: whether what was seen is wanted; else those arrays have no steps.

    Returns:
        The episodes.
    """
    steps, episodes, num_devices = noise.shape
    order = problem.group_order if part is None else part
    current = np.tile(order, steps // len(order))
    kept, heads = steps if remember else 0, guide.affinity.queries.shape[1]
    columns, pooled = PAIR_FEATURES + SUMS * heads, problem.num_groups if heads else 0
    devices = np.array(start, dtype=np.int64)
    filled = Filled(
        devices,
        pairs=np.empty((kept, episodes, num_devices, columns), dtype=np.float32),
        groups=np.empty((kept, episodes, GROUP_FEATURES), dtype=np.float32),
        open=np.empty((kept, episodes, num_devices), dtype=np.bool_),
        placed=np.empty((kept, episodes, pooled), dtype=np.int16),
        visited=np.empty((kept, episodes, pooled), dtype=np.bool_),
        starts=np.empty((kept, episodes, pooled), dtype=np.float32),
        actions=np.empty((steps, episodes), dtype=np.int64),
        costs=np.empty((steps + 1, episodes)),
        best=devices.copy(),
        step_time=np.empty(episodes),
        simulated=np.zeros(episodes, dtype=np.int64),
    )
    told = current, noise, float(memory_penalty), decided, forced
    reduction = compiled(problem)
    with borrowed(reduction, get_num_threads()) as states:
        count = min(len(states), episodes)

        def run(state: int) -> None:
            first, last = state * episodes // count, (state + 1) * episodes // count
            _sweep(reduction.compiled, guide, told, states, filled, state, first, last)

        # In threads of Python's: what runs over numba's has to be compiled once more for that.
        with ThreadPoolExecutor(max(count - 1, 1)) as pool:
            others = [pool.submit(run, state) for state in range(1, count)]
            run(0)
            for other in others:
                other.result()
    found = filled._asdict()
    costs = found.pop("costs")
    scale = np.where(np.isfinite(costs[0]) & (costs[0] > 0), costs[0], 1.0)
    rewards = (costs[:-1] - costs[1:]) / scale
    return Sweeps(current=current, rewards=rewards, best_cost=costs.min(axis=0), **found)


@inner(cache=True)
def _alike(x: Features, device: int, other: int) -> bool:
    for feature in range(x.shape[1]):  # noqa: SIM110, numba's `all` needs a generator
        if x[device, feature] != x[other, feature]:
            return False
    return True


@inner(cache=True)
def distinct(x: Features, allowed: Bools, choices: Bools) -> None:
    """Of devices that nothing tells apart only the first is a choice.

    Where several are idle, the chance to go to one of them would be split, and each less likely
    than to stay.

    Args:
        x: (num_devices, columns).
        allowed: (num_devices,) whether the group may be there.
        choices: (num_devices,) filled.
    """
    for device in range(len(x)):
        choices[device] = allowed[device]
        for earlier in range(device):
            if choices[earlier] and _alike(x, earlier, device):
                choices[device] = False


@inner(cache=True)
def prefer(x: Features, device: int, choices: Bools) -> None:
    """Makes a device the choice among those that nothing tells apart from it."""
    for other in range(len(x)):
        if _alike(x, other, device):
            choices[other] = other == device


@njit(cache=True, nogil=True)
def _sweep(
    c: Compiled,
    guide: CompiledPolicy,
    told: tuple[Ints, Floats, float, bool, Ints],
    states: Buffers,
    filled: Filled,
    state: int,
    first: int,
    last: int,
) -> None:
    """Plays episodes one after the other, with the buffers of one state; for `told` see `play`."""
    w, n, table, affinity, kin = guide
    current, noise, penalty, decided, forced = told
    (
        devices,
        pairs,
        groups,
        open_to,
        placed,
        seen,
        starts,
        actions,
        costs,
        best,
        step_time,
        simulated,
    ) = filled
    num_devices = len(c.device_kind)
    num_groups = devices.shape[1]
    s = view(c, states[state])
    peak = np.empty(num_devices, np.int64)
    nothing = np.empty(0)
    busy = np.empty((num_devices, BINS + 1))
    load = np.empty((num_devices, 2))
    x = np.empty((num_devices, columns_of(affinity)), np.float32)
    y = np.empty(GROUP_FEATURES, np.float32)
    logits = np.empty(num_devices)
    choices = np.empty(num_devices, np.bool_)
    visited = np.empty(num_groups, np.bool_)
    for episode in range(first, last):
        visited[:] = decided
        moved = True
        cost = least = np.inf
        for step in range(len(current) + 1):
            if moved:
                begin(c, devices[episode], s)
                advance(c, s, 0, OPS)
                seconds = max(read(s, peak, nothing), TINY)
                busy_profile(c, w, s, seconds, busy, load)
                cost = penalised(seconds, peak, w.memory_limit, penalty)
                step_time[episode] = seconds
                simulated[episode] += 1
                if cost < least:
                    least = cost
                    for group in range(num_groups):
                        best[episode, group] = devices[episode, group]
            costs[step, episode] = cost
            if step == len(current):
                break
            group = current[step]
            observe(
                c, w, s, step_time[episode], peak, busy, load, group, visited,
                decided or step >= num_groups, x, y,
            )  # fmt: skip
            pool(affinity, kin, s, 1 / step_time[episode], group, visited, x)
            distinct(x, w.allowed[group], choices)
            if len(forced):
                prefer(x, forced[episode, group], choices)
            if len(pairs):
                for device in range(num_devices):
                    open_to[step, episode, device] = choices[device]
                    for feature in range(x.shape[1]):
                        pairs[step, episode, device, feature] = x[device, feature]
                for feature in range(GROUP_FEATURES):
                    groups[step, episode, feature] = y[feature]
                for other in range(placed.shape[2]):
                    placed[step, episode, other] = devices[episode, other]
                    seen[step, episode, other] = visited[other]
                    starts[step, episode, other] = start_of(s, other) / step_time[episode]
            score(n, x, y, table[group], choices, logits)
            chosen, highest = devices[episode, group], -np.inf
            for device in range(num_devices):
                value = logits[device] + noise[step, episode, device]
                if value > highest:
                    chosen, highest = device, value
            if len(forced):
                chosen = forced[episode, group]
            visited[group] = True
            actions[step, episode] = chosen
            moved = chosen != devices[episode, group]
            devices[episode, group] = chosen
