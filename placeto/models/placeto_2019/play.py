"""Many episodes of one problem at once, in arrays."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from placeto.envs.episodes import Episodes
from placeto.models.agent import ALL, Visit
from placeto.models.placeto_2019.network import Placeto2019Policy
from placeto.models.placeto_2019.structure import Structure
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.threads import one_thread_an_operation


@dataclass(frozen=True, eq=False)
class Rollout:
    """What happened in `episodes` episodes of `steps` steps.

    Attributes:
        features: (steps, episodes, num_groups, num_features) what the policy saw.
        current: (steps, episodes) the groups whose devices were chosen.
        allowed: (steps, episodes, num_devices) which devices could be chosen.
        actions: (steps, episodes) devices chosen.
        rewards: (steps, episodes) as in `DevicePlacement-v0`, relative.
        devices: (episodes, num_groups) the last placements.
        step_time: (episodes,) seconds of the last placements.
        best_cost: (episodes,) least penalised step time on the way, in seconds.
    """

    # Along which axis the episodes of an array are. What is not named is the same for all.
    AXES: ClassVar = {
        **dict.fromkeys(("features", "current", "allowed", "actions", "rewards"), 1),
        **dict.fromkeys(("devices", "step_time", "best_cost"), 0),
    }

    features: Features
    current: Ints
    allowed: Bools
    actions: Ints
    rewards: Floats
    devices: Ints
    step_time: Floats
    best_cost: Floats

    @property
    def unreported(self) -> int:
        """None: a visitor is told of all."""
        return 0


@one_thread_an_operation()
def roll_out(
    lockstep: Episodes,
    graph: Structure,
    policy: Placeto2019Policy,
    rng: np.random.Generator,
    *,
    episodes: int,
    part: slice = ALL,
    greedy: bool = False,
    start: Ints | None = None,
    visit: Visit | None = None,
) -> Rollout:
    """Runs episodes in lockstep: a step is one question to the policy and one batch of moves.

    Args:
        lockstep: episodes of one problem, at least as many as are played; the first are used.
        graph: `structure(problem)`.
        policy: chooses the devices.
        rng: draws initial placements, traversals and actions.
        episodes: how many.
        part: which of them are played; what is random is drawn for all.
        greedy: whether the most likely device is taken instead of a drawn one.
        start: (num_groups,) where every episode starts; default: as the rules have it.
        visit: told of every batch of placements that was evaluated.

    Returns:
        The episodes played.
    """
    problem, progress = lockstep.problem(0), lockstep.progress
    options = {} if start is None else {"placement": start}
    starts = lockstep.starts.draw([rng] * episodes, options)[part]
    rows = np.arange(len(starts))
    lockstep.begin(rows, starts)
    if visit is not None:
        visit(*lockstep.evaluated(rows))
    order = np.stack([groups for _, _, groups in starts], axis=1)
    steps = len(order)
    features = lockstep.observations["node_features"]
    seen = np.empty((steps, len(rows), *features.shape[1:]), dtype=np.float32)
    allowed = problem.allowed[order]
    actions = np.zeros((steps, len(features)), dtype=np.int64)
    rewards = np.zeros((steps, len(rows)))
    # The largest of logits with Gumbel noise is a draw from the softmax.
    shape = (steps, episodes, problem.num_devices)
    noise = (np.zeros(shape) if greedy else rng.gumbel(size=shape))[:, part]
    for step, current in enumerate(order):
        seen[step] = features[rows]
        with torch.inference_mode():
            logits = policy(torch.from_numpy(seen[step]), torch.from_numpy(current), graph)
        scores = np.where(allowed[step], logits.numpy() + noise[step], -np.inf)
        actions[step, rows] = scores.argmax(axis=1)
        moved = rows[lockstep.placements(0)[rows, current] != actions[step, rows]]
        rewards[step] = lockstep.step(rows, actions[step])[0][rows]
        if visit is not None and len(moved):
            visit(*lockstep.evaluated(moved))
    devices, outcomes = lockstep.evaluated(rows)
    best = progress.best_cost[rows].copy()
    actions = actions[:, rows]
    return Rollout(seen, order, allowed, actions, rewards, devices, outcomes.step_time, best)
