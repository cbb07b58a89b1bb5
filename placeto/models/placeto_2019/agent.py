"""Placeto's agent: it goes through the groups of a placement and improves it step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from placeto.envs.episodes import Episodes, EpisodeSpecification
from placeto.models.agent import Agent, Played, Visit, Wanted
from placeto.models.network import entropy, masked
from placeto.models.placeto_2019.network import Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.settings import Placeto2019Config, Placeto2019NetworkConfig
from placeto.models.placeto_2019.structure import structure
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.support.arrays import Bools, Features, Ints
from placeto.support.errors import PlacetoError
from placeto.support.threads import one_thread_an_operation

# Of all states that a thread takes at once: what it computes of so many stays in the caches.
GROUPS_AT_ONCE = 16384


@dataclass(frozen=True, eq=False)
class Rollout(Played):
    """What happened in some episodes; rewards are as in `DevicePlacement-v0`, relative."""

    AXES: ClassVar = Played.AXES | dict.fromkeys(("features", "current", "allowed", "actions"), 1)

    features: Features  # (steps, episodes, num_groups, num_features) what the policy saw
    current: Ints  # (steps, episodes) the groups whose devices were chosen
    allowed: Bools  # (steps, episodes, num_devices) which devices could be chosen
    actions: Ints  # (steps, episodes) devices chosen


class Placeto2019Agent(Agent[Rollout]):
    """Placeto's Markov decision process and policy (Addanki et al. 2019, arXiv:1906.08879).

    Args:
        problems: what to place; all on clusters with the same number of devices.
        config: shape of the policy, and how episodes run.
        evaluate: turns placements into step times.

    Raises:
        PlacetoError: clusters with different numbers of devices.
    """

    network: Placeto2019Policy

    def __init__(
        self, problems: Sequence[PlacementProblem], config: Placeto2019Config, evaluate: Evaluator
    ) -> None:
        sizes = {problem.num_devices for problem in problems}
        if len(sizes) > 1:
            raise PlacetoError(
                f"problems have {', '.join(map(str, sorted(sizes)))} devices; "
                "this policy takes one number of devices"
            )
        self._problems = problems
        self._specifications = [
            EpisodeSpecification(
                {problem.graph.name: problem}, config.rules, evaluate, device_features=False
            )
            for problem in problems
        ]
        self._structures = [structure(problem) for problem in problems]
        self._episodes: dict[int, Episodes] = {}
        network = config.part(Placeto2019NetworkConfig)
        self.network = Placeto2019Policy(Placeto2019Shape(num_devices=sizes.pop(), **network))

    @one_thread_an_operation()
    def roll_out(
        self, wanted: Wanted, rng: np.random.Generator, visit: Visit | None = None
    ) -> Rollout:
        """Goes through the groups: a step is one question to the policy and one batch of moves."""
        problem, graph = self._problems[wanted.problem], self._structures[wanted.problem]
        lockstep = self._lockstep(wanted.problem, len(range(wanted.episodes)[wanted.part]))
        options = {} if wanted.start is None else {"placement": wanted.start}
        starts = lockstep.starts.draw([rng] * wanted.episodes, options)[wanted.part]
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
        noise = wanted.noise(rng, steps, wanted.episodes, problem.num_devices)[:, wanted.part]
        for step, current in enumerate(order):
            seen[step] = features[rows]
            with torch.inference_mode():
                logits = self.network(
                    torch.from_numpy(seen[step]), torch.from_numpy(current), graph
                ).numpy()
            scores = np.where(allowed[step], logits + noise[step], -np.inf)
            actions[step, rows] = scores.argmax(axis=1)
            moved = rows[lockstep.placements(0)[rows, current] != actions[step, rows]]
            rewards[step] = lockstep.step(rows, actions[step])[0][rows]
            if visit is not None and len(moved):
                visit(*lockstep.evaluated(moved))
        devices, outcomes = lockstep.evaluated(rows)
        best = lockstep.progress.best_cost[rows].copy()
        played = rewards, devices, outcomes.step_time, best
        return Rollout(*played, seen, order, allowed, actions[:, rows])

    def states_at_once(self, index: int) -> int:
        """As many as have `GROUPS_AT_ONCE` groups together."""
        return max(GROUPS_AT_ONCE // self._problems[index].num_groups, 1)

    def terms(self, index: int, played: Rollout, part: slice) -> tuple[Tensor, Tensor]:
        """Of the device that each step chose."""
        columns = (played.features, played.current, played.allowed, played.actions)
        features, current, allowed, actions = (
            torch.from_numpy(column).flatten(0, 1)[part] for column in columns
        )
        logits = self.network(features, current, self._structures[index])
        log = masked(logits, allowed).log_softmax(dim=-1)
        return log.gather(1, actions[:, None]).squeeze(1), entropy(log)

    def _lockstep(self, index: int, least: int) -> Episodes:
        """Episodes of a problem, at least so many; the first are used."""
        if index not in self._episodes or len(self._episodes[index].over()) < least:
            self._episodes[index] = self._specifications[index].episodes(least)
        return self._episodes[index]
