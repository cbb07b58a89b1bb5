"""Many episodes of one problem at once, in arrays."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from placeto.envs.features import (
    Features,
    StaticFeatures,
    node_features,
    num_node_features,
    update_node_features,
)
from placeto.graph import Floats, Ints
from placeto.heuristics.initial import initial_placement
from placeto.models.agent import ALL, Visit
from placeto.models.placeto_2019.network import Placeto2019Policy
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.models.placeto_2019.structure import Structure
from placeto.objective import penalised_time
from placeto.problem import Bools, PlacementProblem
from placeto.simulation import EvaluatedBatch, Outcomes
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
    def untold(self) -> int:
        """None: a visitor is told of all."""
        return 0


@one_thread_an_operation()
def roll_out(
    batch: EvaluatedBatch,
    static: StaticFeatures,
    graph: Structure,
    policy: Placeto2019Policy,
    config: Placeto2019Config,
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
        batch: placements of the problem, at least a row an episode played; the first are used.
        static: `static_features(problem)`.
        graph: `structure(problem)`.
        policy: chooses the devices.
        config: reward, sweeps, traversal, initial placement, memory penalty.
        rng: draws initial placements, traversals and actions.
        episodes: how many.
        part: which of them are played; what is random is drawn for all.
        greedy: whether the most likely device is taken instead of a drawn one.
        start: (num_groups,) where every episode starts; default: the configured placement.
        visit: told of every batch of placements that was evaluated.

    Returns:
        The episodes played.
    """
    problem, rows = batch.problem, np.arange(len(range(episodes)[part]))
    first = config.initial_placement if start is None else start
    starts = [initial_placement(problem, first, rng) for _ in range(episodes)]
    batch.place(rows, np.stack(starts[part]))
    devices, outcomes = batch.devices[: len(rows)], _of_rows(batch.outcomes, slice(len(rows)))
    if visit is not None:
        visit(devices.copy(), _of_rows(batch.outcomes, rows))
    orders = [_order(problem, config, rng) for _ in range(episodes)]
    order = np.stack(orders[part], axis=1)
    steps = len(order)
    cost = penalised_time(problem, outcomes, config.memory_penalty)
    scale = np.where(outcomes.step_time > 0, outcomes.step_time, 1.0)
    best = cost.copy()
    width = num_node_features(problem.num_devices)
    seen = np.empty((steps, len(rows), problem.num_groups, width), dtype=np.float32)
    unvisited = np.zeros(devices.shape, dtype=bool)
    seen[0] = node_features(
        static, devices, outcomes.group_start, outcomes.step_time, order[0], unvisited
    )
    allowed = problem.allowed[order]
    actions = np.empty((steps, len(rows)), dtype=np.int64)
    rewards = np.zeros((steps, len(rows)))
    # The largest of logits with Gumbel noise is a draw from the softmax.
    shape = (steps, episodes, problem.num_devices)
    noise = (np.zeros(shape) if greedy else rng.gumbel(size=shape))[:, part]
    for step, current in enumerate(order):
        with torch.inference_mode():
            logits = policy(torch.from_numpy(seen[step]), torch.from_numpy(current), graph)
        scores = np.where(allowed[step], logits.numpy() + noise[step], -np.inf)
        actions[step] = scores.argmax(axis=1)
        moved = batch.move(rows, current, actions[step])
        if len(moved):
            changed = _of_rows(batch.outcomes, moved)
            if visit is not None:
                visit(devices[moved], changed)
            after = penalised_time(problem, changed, config.memory_penalty)
            rewards[step, moved] = (cost[moved] - after) / scale[moved]
            cost[moved] = after
            best = np.minimum(best, cost)
        if step + 1 < steps:
            seen[step + 1] = seen[step]
            update_node_features(
                seen[step + 1], rows, devices, outcomes.group_start, outcomes.step_time,
                current, order[step + 1],
            )  # fmt: skip
    if config.reward == "terminal":
        rewards[:] = 0
        rewards[-1] = -cost / scale
    last = outcomes.step_time.copy()
    return Rollout(seen, order, allowed, actions, rewards, devices.copy(), last, best)


def _of_rows(outcomes: Outcomes, rows: Ints | slice) -> Outcomes:
    return Outcomes(
        step_time=outcomes.step_time[rows],
        peak_memory=outcomes.peak_memory[rows],
        group_start=outcomes.group_start[rows],
        feasible=outcomes.feasible[rows],
    )


def _order(problem: PlacementProblem, config: Placeto2019Config, rng: np.random.Generator) -> Ints:
    """(num_groups * sweeps,) the groups as an episode visits them."""
    if config.traversal == "random":
        return np.concatenate([rng.permutation(problem.num_groups) for _ in range(config.sweeps)])
    return np.tile(problem.group_order, config.sweeps)
