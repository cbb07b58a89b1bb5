"""How far episodes have come, and what follows from a step."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.jit import njit


class EpisodeProgress(NamedTuple):
    """How far each episode of a batch has come; `cost` is ρ, penalised step time."""

    current: Ints  # (batch,) the group of the next step; after the last, of the last
    action_mask: NDArray[np.int8]  # (batch, num_devices) what the current group allows
    order: Ints  # (batch, max_steps) the group of each step, up to the length
    length: Ints  # (batch,) steps of the episode; 0 before the first reset
    taken: Ints  # (batch,) steps behind it
    chosen: Ints  # (batch,) the group of the last step
    visited: Bools  # (batch, max_groups) whether the episode has chosen the group's device
    scale: Floats  # (batch,) s that rewards are divided by
    cost: Floats  # (batch,) s
    best_cost: Floats  # (batch,) s, the least of the episode
    best_step_time: Floats  # (batch,) s, at the best cost
    best_placement: Ints  # (batch, max_groups) at the best cost, -1 for padding


def no_progress(observations: dict[str, NDArray[Any]], max_steps: int) -> EpisodeProgress:
    """The progress of a batch before its first reset, for episodes of at most `max_steps`.

    Of its `observations`, `current_node` and `action_mask` become part of it.
    """
    batch, max_groups = observations["node_mask"].shape
    return EpisodeProgress(
        observations["current_node"],
        observations["action_mask"],
        order=np.zeros((batch, max_steps), dtype=np.int64),
        length=np.zeros(batch, dtype=np.int64),
        taken=np.zeros(batch, dtype=np.int64),
        chosen=np.zeros(batch, dtype=np.int64),
        visited=np.zeros((batch, max_groups), dtype=bool),
        scale=np.ones(batch),
        cost=np.zeros(batch),
        best_cost=np.zeros(batch),
        best_step_time=np.zeros(batch),
        best_placement=np.full((batch, max_groups), -1),
    )


@njit(cache=True, error_model="numpy")
def advance(
    rows: Ints,
    progress: EpisodeProgress,
    cost: Floats,
    step_time: Floats,
    devices: Ints,
    allowed: Bools,
    terminal: bool,
    rewards: Floats,
    terminated: Bools,
) -> None:
    """Takes some episodes of one problem over a step, of whose placements all is known.

    Args:
        rows: (n,) the episodes.
        progress: of the batch; its rows are written, as are those of the last two.
        cost: (batch,) s, ρ after the step.
        step_time: (batch,) s.
        devices: (batch, num_groups) the placements after the step.
        allowed: (num_groups, num_devices) of the problem.
        terminal: whether only the last step is rewarded, by -ρ; else each by the fall of ρ.
        rewards: (batch,)
        terminated: (batch,)
    """
    num_groups = devices.shape[1]
    for row in rows:
        before = progress.cost[row]
        progress.cost[row] = cost[row]
        if cost[row] < progress.best_cost[row]:
            progress.best_cost[row] = cost[row]
            progress.best_step_time[row] = step_time[row]
            for group in range(num_groups):
                progress.best_placement[row, group] = devices[row, group]
        progress.taken[row] += 1
        last = progress.taken[row] == progress.length[row]
        terminated[row] = last
        progress.chosen[row] = progress.current[row]
        progress.visited[row, progress.chosen[row]] = True
        if not last:
            progress.current[row] = progress.order[row, progress.taken[row]]
        for device in range(allowed.shape[1]):
            progress.action_mask[row, device] = allowed[progress.current[row], device]
        if not terminal:
            rewards[row] = (before - cost[row]) / progress.scale[row]
        elif last:
            rewards[row] = -cost[row] / progress.scale[row]
