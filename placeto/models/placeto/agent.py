"""The agent: problems of any size, on any devices, with one network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from placeto.envs.features.groups import GroupGraph, group_graph
from placeto.envs.features.pairs import GroupIndex, group_index
from placeto.heuristics.initial import single_devices
from placeto.models.agent import ALL, Teacher, Visit
from placeto.models.choices import entropy
from placeto.models.placeto.lessons import disturbed, relabelled
from placeto.models.placeto.network import PlacetoPolicy
from placeto.models.placeto.play import NOT_FORCED, CompiledPolicy, Sweeps, play
from placeto.models.placeto.settings import PlacetoConfig, PlacetoNetworkConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError
from placeto.support.threads import one_thread_an_operation

STATES_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A problem, and what does not change while it is trained on."""

    problem: PlacementProblem

    @cached_property
    def graph(self) -> GroupGraph:
        return group_graph(self.problem)

    @cached_property
    def group_index(self) -> GroupIndex:
        return group_index(self.problem)

    @cached_property
    def single(self) -> Ints:
        """(num_groups,) the best device for all groups."""
        singles = single_devices(self.problem)
        outcomes = simulate_many(self.problem, singles)
        best: Ints = singles[np.lexsort((outcomes.step_time, ~outcomes.feasible))[0]]
        return best


class PlacetoAgent:
    """Sweeps over the groups, each step of which chooses a device by the present schedule.

    Args:
        problems: what to place, on any clusters.
        config: shape of the policy, and how episodes run.
        evaluate: the simulator; the policy reads its schedules.
        teacher: gives the placements that lessons are of.

    Raises:
        PlacetoError: another evaluator.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: PlacetoConfig,
        evaluate: Evaluator = simulate_many,
        teacher: Teacher | None = None,
    ) -> None:
        if evaluate is not simulate_many:
            raise PlacetoError(
                "placeto reads simulated schedules; it cannot be trained on measured step times"
            )
        self._config = config
        self._teacher = teacher
        self._tasks = [_Prepared(problem) for problem in problems]
        self._taught: dict[int, Ints] = {}
        self._lessons: dict[tuple[int, int], Sweeps] = {}
        shape = PlacetoNetworkConfig(**config.part(PlacetoNetworkConfig))
        self.network = PlacetoPolicy(shape)

    def roll_out(
        self,
        index: int,
        rng: np.random.Generator,
        *,
        episodes: int,
        part: slice = ALL,
        greedy: bool = False,
        start: Ints | None = None,
        visit: Visit | None = None,
    ) -> Sweeps:
        """Goes through the groups, from one device; see `sweeps.play`."""
        task = self._tasks[index]
        problem = task.problem
        first = task.single if start is None else start
        shape = (self._config.sweeps * problem.num_groups, episodes, problem.num_devices)
        noise = np.zeros(shape) if greedy else rng.gumbel(size=shape)
        noise = np.ascontiguousarray(noise[:, part])
        played = self._play(task, np.tile(first, (noise.shape[1], 1)), noise)
        if visit is not None:
            visit(played.best, simulate_many(problem, played.best))
        return played

    def lesson(self, index: int, number: int, progress: float) -> Sweeps | None:
        """Episodes that end in the teacher's placement: from one device, and from near to it.

        What is seen on the way depends on no policy, so a lesson is prepared once and kept.

        Args:
            index: which problem.
            number: which of its lessons, from 0; after the last comes the first again.
            progress: how much of the run is over, from 0 to 1.

        Returns:
            The episodes; None without a teacher, and once the share that imitates is over.
        """
        if self._teacher is None or progress >= self._config.imitation:
            return None
        number %= self._config.lessons
        if (index, number) not in self._lessons:
            self._lessons[index, number] = self._prepared(index, number)
        return self._lessons[index, number]

    def _prepared(self, index: int, number: int) -> Sweeps:
        task = self._tasks[index]
        problem = task.problem
        if index not in self._taught:
            assert self._teacher is not None
            first = int(np.bincount(task.single).argmax())
            self._taught[index] = relabelled(problem, self._teacher(problem), first)
        taught = self._taught[index]
        rng = np.random.default_rng([self._config.seed, index, number])
        near = [disturbed(problem, taught, rng) for _ in range(self._config.disturbed_lessons)]
        quiet = np.zeros((problem.num_groups, 1, problem.num_devices))
        return _joined(
            self._play(task, task.single[None], quiet, forced=taught[None]),
            self._play(
                task,
                np.stack(near),
                np.repeat(quiet, len(near), axis=1),
                decided=True,
                forced=np.tile(taught, (len(near), 1)),
            ),
        )

    def states_at_once(self, index: int) -> int:
        """So many that the arrays of a layer stay in the caches."""
        return STATES_AT_ONCE

    def terms(self, index: int, played: Sweeps, part: slice) -> tuple[Tensor, Tensor]:
        """Of the device that each step chose."""
        task = self._tasks[index]
        pairs, groups, choices, actions = (
            torch.from_numpy(values).flatten(0, 1)[part]
            for values in (played.pairs, played.groups, played.open, played.actions)
        )
        episodes = played.actions.shape[1]
        current = torch.from_numpy(played.current).repeat_interleave(episodes)[part]
        table = self.network.embed(task.graph)
        log = self.network(pairs, groups, table[current], choices).log_softmax(dim=-1)
        return log.gather(1, actions[:, None]).squeeze(1), entropy(log)

    def _play(
        self,
        task: _Prepared,
        start: Ints,
        noise: Floats,
        *,
        decided: bool = False,
        forced: Ints = NOT_FORCED,
    ) -> Sweeps:
        with torch.inference_mode(), one_thread_an_operation():
            table = self.network.embed(task.graph).numpy()
        guide = CompiledPolicy(task.group_index, self.network.weights(), table)
        return play(
            task.problem,
            guide,
            start,
            noise,
            memory_penalty=self._config.memory_penalty,
            decided=decided,
            forced=forced,
        )


def _joined(first: Sweeps, second: Sweeps) -> Sweeps:
    """The episodes of both, which go through the same groups."""
    return replace(
        first,
        **{
            name: np.concatenate([getattr(first, name), getattr(second, name)], axis=1)
            for name in ("pairs", "groups", "open", "actions", "rewards")
        },
        **{
            name: np.concatenate([getattr(first, name), getattr(second, name)])
            for name in ("devices", "step_time", "best", "best_cost", "simulated")
        },
    )
