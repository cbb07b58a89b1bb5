"""Many episodes of one problem at once, in arrays."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from placeto.features import Features, StaticFeatures, node_features, num_node_features
from placeto.graph import Floats, Ints
from placeto.initial import initial_placement
from placeto.models import PlacetoPolicy, Structure
from placeto.problem import Bools, PlacementProblem
from placeto.simulation import Evaluator, Outcomes, penalised_time
from placeto.training.config import TrainingConfig

Visit = Callable[[Ints, Outcomes], None]


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

    features: Features
    current: Ints
    allowed: Bools
    actions: Ints
    rewards: Floats
    devices: Ints
    step_time: Floats
    best_cost: Floats


def roll_out(
    problem: PlacementProblem,
    static: StaticFeatures,
    graph: Structure,
    policy: PlacetoPolicy,
    config: TrainingConfig,
    evaluate: Evaluator,
    rng: np.random.Generator,
    *,
    episodes: int,
    greedy: bool = False,
    start: Ints | None = None,
    visit: Visit | None = None,
) -> Rollout:
    """Runs episodes in lockstep; the policy is asked, and placements are simulated, in batches.

    Args:
        problem: what is placed.
        static: `static_features(problem)`.
        graph: `structure(problem)`.
        policy: chooses the devices.
        config: reward, sweeps, traversal, initial placement, memory penalty.
        evaluate: turns placements into step times.
        rng: draws initial placements, traversals and actions.
        episodes: how many.
        greedy: whether the most likely device is taken instead of a drawn one.
        start: (num_groups,) where every episode starts; default: the configured placement.
        visit: told of every batch of placements that was evaluated.

    Returns:
        The episodes.
    """
    groups, rows = problem.num_groups, np.arange(episodes)
    devices = np.stack(
        [
            initial_placement(problem, config.initial_placement if start is None else start, rng)
            for _ in range(episodes)
        ]
    )
    order = np.stack([_order(problem, config, rng) for _ in range(episodes)], axis=1)
    steps = len(order)
    outcomes = evaluate(problem, devices)
    if visit is not None:
        visit(devices, outcomes)
    step_time, starts = outcomes.step_time.copy(), outcomes.group_start.copy()
    cost = penalised_time(problem, outcomes, config.memory_penalty)
    scale = np.where(step_time > 0, step_time, 1.0)
    best = cost.copy()
    visited = np.zeros((episodes, groups), dtype=bool)
    width = num_node_features(problem.num_devices)
    seen = np.empty((steps, episodes, groups, width), dtype=np.float32)
    actions = np.empty((steps, episodes), dtype=np.int64)
    rewards = np.zeros((steps, episodes))
    allowed = problem.allowed[order]
    for step in range(steps):
        current = order[step]
        seen[step] = node_features(static, devices, starts, step_time, current, visited)
        with torch.no_grad():
            logits = policy(torch.from_numpy(seen[step]), torch.from_numpy(current), graph)
        logits = masked(logits, torch.from_numpy(allowed[step])).double().numpy()
        if not greedy:  # the largest of logits with Gumbel noise is a draw from the softmax
            logits = logits + rng.gumbel(size=logits.shape)
        action = actions[step] = logits.argmax(axis=1)
        moved = np.flatnonzero(action != devices[rows, current])
        devices[rows, current] = action
        visited[rows, current] = True
        if len(moved):
            changed = evaluate(problem, devices[moved])
            if visit is not None:
                visit(devices[moved], changed)
            step_time[moved], starts[moved] = changed.step_time, changed.group_start
            after = penalised_time(problem, changed, config.memory_penalty)
            rewards[step, moved] = (cost[moved] - after) / scale[moved]
            cost[moved] = after
            best = np.minimum(best, cost)
    if config.reward == "terminal":
        rewards[:] = 0
        rewards[-1] = -cost / scale
    return Rollout(seen, order, allowed, actions, rewards, devices, step_time, best)


def masked(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits with those of devices that are not allowed at minus infinity."""
    return logits.masked_fill(~allowed, -torch.inf)


def _order(problem: PlacementProblem, config: TrainingConfig, rng: np.random.Generator) -> Ints:
    """(num_groups * sweeps,) the groups as an episode visits them."""
    if config.traversal == "random":
        return np.concatenate([rng.permutation(problem.num_groups) for _ in range(config.sweeps)])
    return np.tile(problem.group_order, config.sweeps)
