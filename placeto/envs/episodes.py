"""Episodes of `DevicePlacement-v0` side by side: its dynamics, written once for all its forms."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from placeto.envs.features import node_features, static_features, update_node_features
from placeto.envs.features.devices import ScheduledBatch
from placeto.envs.observation import Observation, empty_observations, observation_space, write_graph
from placeto.envs.progress import advance, no_progress
from placeto.envs.rules import EpisodeRules, Start, Starts
from placeto.envs.viewer import render
from placeto.measurement import MeasuringEvaluator
from placeto.objective import penalised_time
from placeto.problem import PlacementProblem
from placeto.simulation import EvaluatedBatch, Evaluator, Outcomes, simulate_many
from placeto.support.arrays import Bools, Floats, Ints

RenderMode = Literal["ansi", "rgb_array"] | None


@dataclass(frozen=True, eq=False)
class EpisodeSpecification:
    """What episodes are made of.

    Attributes:
        problems: by the names of their graphs; on one cluster.
        rules: start, length and reward.
        evaluate: turns placements into step times.
        max_groups: what observations are padded to; None: the largest graph's.
        max_edges: likewise.
        render_mode: of an environment.
        measures: the evaluator where it has processes of the environment's own.
        device_features: whether observations have them.
    """

    problems: Mapping[str, PlacementProblem]
    rules: EpisodeRules
    evaluate: Evaluator = simulate_many
    max_groups: int | None = None
    max_edges: int | None = None
    render_mode: RenderMode = None
    measures: MeasuringEvaluator | None = None
    device_features: bool = True

    @cached_property
    def space(self) -> spaces.Dict:
        """Of one episode's observations; a `PlacetoError` if they are too small for a graph."""
        space = observation_space([*self.problems.values()], self.max_groups, self.max_edges)
        if not self.device_features:
            del space.spaces["device_features"]
        return space

    @property
    def num_devices(self) -> int:
        """Of the cluster."""
        return next(iter(self.problems.values())).num_devices

    def episodes(self, batch: int) -> "Episodes":
        """Episodes side by side."""
        return Episodes(self, batch)

    def close(self) -> None:
        """Ends the processes of `evaluator="measure"`."""
        if self.measures is not None:
            self.measures.close()


class Episodes:
    """A batch of episodes, each of one of several problems, stepped together.

    Methods take `rows`, (n,) the episodes that they are about, each at most once; the other arrays
    that they take and return are as long as the batch, and only the rows count.

    Attributes:
        observations: (batch, ...) a key of the space, those of now. They change in place: what
            is given away is copied.
        infos: (batch, ...) a key of the info, likewise.
        progress: of each episode, likewise.
        starts: where episodes can begin.
    """

    def __init__(self, made_of: EpisodeSpecification, batch: int) -> None:
        problems, rules, evaluate = made_of.problems, made_of.rules, made_of.evaluate
        self._names, self._problems = list(problems), list(problems.values())
        self._rules = rules
        kind = ScheduledBatch if made_of.device_features else EvaluatedBatch
        self._batches = [kind(problem, batch, evaluate) for problem in self._problems]
        # A row is of one problem at a time: the batches of all fill in the same arrays.
        outcomes = self._batches[0].outcomes
        for other in self._batches[1:]:
            other.outcomes = outcomes._replace(group_start=other.outcomes.group_start)
        self._static = [static_features(problem) for problem in self._problems]
        self.starts = Starts(problems, rules)
        self._measuring = evaluate if isinstance(evaluate, MeasuringEvaluator) else None
        self._problem = np.zeros(batch, dtype=np.int64)
        self.observations = empty_observations(batch, made_of.space)
        max_steps = rules.sweeps * max(problem.num_groups for problem in self._problems)
        self.progress = no_progress(self.observations, max_steps)
        self.infos: dict[str, NDArray[Any]] = {
            "step_time": outcomes.step_time,
            "best_step_time": self.progress.best_step_time,
            "best_placement": self.progress.best_placement,
            "peak_memory": outcomes.peak_memory,
            "feasible": outcomes.feasible,
            "graph": np.full(batch, None, dtype=object),
        }
        if self._measuring is not None:
            self.infos["interval"] = np.zeros((batch, 2))
            self.infos["steps_measured"] = np.zeros(batch, dtype=np.int64)
            self.infos["reason"] = np.full(batch, None, dtype=object)

    def over(self) -> Bools:
        """(batch,) which episodes have ended, or were never reset."""
        ended: Bools = self.progress.taken >= self.progress.length
        return ended

    def begin(self, rows: Ints, starts: Sequence[Start]) -> None:
        """Starts new episodes in some rows, one start a row.

        Where the evaluator raises, the episodes of the rows have to be started again.
        """
        progress = self.progress
        progress.length[rows] = 0
        progress.taken[rows] = 0
        progress.visited[rows] = False
        progress.best_placement[rows] = -1
        placements = {}
        for row, (number, devices, order) in zip(rows.tolist(), starts, strict=True):
            problem = self._problems[number]
            self._problem[row] = number
            self.infos["graph"][row] = self._names[number]
            progress.order[row, : len(order)] = order
            progress.current[row] = order[0]
            progress.action_mask[row] = problem.allowed[order[0]]
            write_graph(self.observations, row, problem, self._static[number])
            placements[row] = devices
        for number, mine in self._by_problem(rows):
            problem, batch = self._problems[number], self._batches[number]
            outcomes, groups = batch.outcomes, problem.num_groups
            many = np.stack([placements[row] for row in mine.tolist()])
            batch.place(mine, many)
            cost = penalised_time(problem, outcomes, self._rules.memory_penalty)[mine]
            step_time = outcomes.step_time[mine]
            progress.cost[mine] = progress.best_cost[mine] = cost
            progress.best_step_time[mine] = step_time
            progress.best_placement[mine, :groups] = many
            progress.scale[mine] = 1.0
            if self._rules.reward_scale == "relative":
                progress.scale[mine[step_time > 0]] = step_time[step_time > 0]
            start, current = outcomes.group_start[mine], progress.current[mine]
            static, visited = self._static[number], progress.visited[mine, :groups]
            self.observations["node_features"][mine, :groups] = node_features(
                static, many, start, step_time, current, visited
            )
            self._tell_more(problem, batch, mine)
        progress.length[rows] = [len(order) for _, _, order in starts]

    def step(self, rows: Ints, actions: Ints) -> tuple[Floats, Bools]:
        """Gives the current groups of some rows the devices `actions`.

        Args:
            rows: (n,) which; their episodes are not over.
            actions: (batch,) devices; where the group may not be on its device, it stays.

        Returns:
            Rewards (batch,) and terminations (batch,), zeros in other rows.
        """
        progress, features = self.progress, self.observations["node_features"]
        penalty, terminal = self._rules.memory_penalty, self._rules.reward == "terminal"
        rewards, terminated = np.zeros(len(actions)), np.zeros(len(actions), dtype=bool)
        # All are evaluated before any goes on: if the evaluator raises, the step can be retaken.
        # Until then, infos of rows that were evaluated are ahead of their episodes.
        for number, mine in self._by_problem(rows):
            batch, allowed = self._batches[number], self._problems[number].allowed
            groups, devices = progress.current[mine], actions[mine]
            stays = batch.devices[mine, groups]
            batch.move(mine, groups, np.where(allowed[groups, devices], devices, stays))
        for number, mine in self._by_problem(rows):
            problem, batch = self._problems[number], self._batches[number]
            outcomes, devices = batch.outcomes, batch.devices
            start, step_time = outcomes.group_start, outcomes.step_time
            cost, allowed = penalised_time(problem, outcomes, penalty), problem.allowed
            advance(
                mine, progress, cost, step_time, devices, allowed, terminal, rewards, terminated
            )
            chosen, current = progress.chosen, progress.current
            update_node_features(features, mine, devices, start, step_time, chosen, current)
            self._tell_more(problem, batch, mine)
        return rewards, terminated

    def observe(self, row: int) -> Observation:
        """A copy of the observation of one episode."""
        return {key: value[row].copy() for key, value in self.observations.items()}

    def inform(self, row: int) -> dict[str, Any]:
        """The info of one episode: plain numbers and text, and copies of arrays."""
        found = {key: values[row] for key, values in self.infos.items()}
        return {k: v.item() if isinstance(v, np.generic) else copy(v) for k, v in found.items()}

    def problem(self, row: int) -> PlacementProblem:
        """The problem of one episode; the first one before the first reset."""
        return self._problems[int(self._problem[row])]

    def placements(self, row: int) -> Ints:
        """(batch, num_groups) placements of one episode's problem, its own in its row; in place."""
        return self._batches[int(self._problem[row])].devices

    def evaluated(self, rows: Ints) -> tuple[Ints, Outcomes]:
        """Copies of (n, num_groups) devices, n > 0, of one problem's episodes, and outcomes."""
        batch = self._batches[int(self._problem[rows[0]])]
        return batch.devices[rows], batch.outcomes.of(rows)

    def render(self, row: int, mode: str | None) -> Any:
        """The schedule of one episode as `render` of the viewer has it; None before a reset."""
        if mode is None or not self.progress.length[row]:
            return None
        return render(self.problem(row), self.placements(row)[row], mode)

    def _by_problem(self, rows: Ints) -> Iterator[tuple[int, Ints]]:
        """The rows of each problem that has some."""
        if len(self._problems) > 1:
            numbers = self._problem[rows]
            for number in np.unique(numbers).tolist():
                yield number, rows[numbers == number]
        elif len(rows):
            yield 0, rows

    def _tell_more(self, problem: PlacementProblem, batch: EvaluatedBatch, rows: Ints) -> None:
        """What schedules and measurements say of the placements of some rows, where it is told."""
        if isinstance(batch, ScheduledBatch):
            batch.write(rows, self.progress, self.observations["device_features"])
        if self._measuring is not None:
            for row in rows.tolist():
                measurement = self._measuring.measurement(problem, batch.devices[row])
                self.infos["interval"][row] = measurement.interval
                self.infos["steps_measured"][row] = len(measurement.samples)
                self.infos["reason"][row] = measurement.reason
