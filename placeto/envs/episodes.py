"""Episodes of `DevicePlacement-v0` side by side: its dynamics, written once for all its forms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from placeto.envs.batch import ScheduledBatch
from placeto.envs.features import node_features, static_features, update_node_features
from placeto.envs.observation import Observation, empty_observations, write_graph
from placeto.envs.progress import advance, moves, no_progress
from placeto.envs.rules import EpisodeRules
from placeto.envs.starts import Start, Starts
from placeto.envs.viewer import render
from placeto.measurement import MeasuringEvaluator
from placeto.objective import penalised_time
from placeto.problem import PlacementProblem
from placeto.simulation import EvaluatedBatch, Evaluator, Outcomes
from placeto.support.arrays import Bools, Floats, Ints


class Episodes:
    """A batch of episodes, each of one of several problems, stepped together.

    Methods take `rows`, the episodes that they are about, each at most once; the other arrays that
    they take and return are as long as the batch, and only the rows count.

    Args:
        problems: by the name of the graph; on one cluster.
        rules: of the episodes.
        evaluate: turns placements into step times.
        space: of the observations of one episode.
        batch: how many.

    Attributes:
        observations: (batch, ...) a key of the space, those of now. They change in place: what
            is given away is copied.
        infos: (batch, ...) a key of the info, likewise.
        progress: of each episode, likewise.
        starts: where episodes begin.
    """

    def __init__(
        self,
        problems: Mapping[str, PlacementProblem],
        rules: EpisodeRules,
        evaluate: Evaluator,
        space: spaces.Dict,
        batch: int,
    ) -> None:
        self._names, self._problems = list(problems), list(problems.values())
        self._rules = rules
        kind = ScheduledBatch if "device_features" in space.spaces else EvaluatedBatch
        self._batches = [kind(problem, batch, evaluate) for problem in self._problems]
        self._static = [static_features(problem) for problem in self._problems]
        self.starts = Starts(problems, rules)
        self._measuring = evaluate if isinstance(evaluate, MeasuringEvaluator) else None
        self._problem = np.zeros(batch, dtype=np.int64)
        self.observations = empty_observations(batch, space)
        max_steps = rules.sweeps * max(problem.num_groups for problem in self._problems)
        self.progress = progress = no_progress(self.observations, max_steps)
        self.infos: dict[str, NDArray[Any]] = {
            "step_time": progress.step_time,
            "best_step_time": progress.best_step_time,
            "best_placement": progress.best_placement,
            "peak_memory": progress.peak_memory,
            "feasible": progress.feasible,
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

    def reset(
        self,
        rows: Ints,
        generators: Sequence[np.random.Generator],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Starts new episodes in some rows.

        Args:
            rows: (n,) which.
            generators: one a row, draws its graph, placement and traversal, in this order.
            options: of `reset`, the same for all of them.

        Raises:
            PlacetoError: options that cannot be used; nothing has changed then, but generators
                may have drawn. Where the evaluator raises, the episodes of the rows have to be
                reset again.
        """
        self.begin(rows, self.starts.draw(generators, options or {}))

    def begin(self, rows: Ints, starts: Sequence[Start]) -> None:
        """Starts new episodes in some rows from where it is known.

        Args:
            rows: (n,) which.
            starts: one a row.
        """
        progress = self.progress
        progress.length[rows] = 0
        for row, (number, _, order) in zip(rows.tolist(), starts, strict=True):
            problem = self._problems[number]
            self._problem[row] = number
            self.infos["graph"][row] = self._names[number]
            progress.order[row, : len(order)] = order
            progress.current[row] = order[0]
            progress.action_mask[row] = problem.allowed[order[0]]
            write_graph(self.observations, row, problem, self._static[number])
        progress.taken[rows] = 0
        progress.visited[rows] = False
        progress.best_placement[rows] = -1
        devices = {row: start[1] for row, start in zip(rows.tolist(), starts, strict=True)}
        for number, mine in self._by_problem(rows):
            self._place(number, mine, np.stack([devices[row] for row in mine.tolist()]))
        progress.length[rows] = [len(order) for _, _, order in starts]

    def step(self, rows: Ints, actions: Ints) -> tuple[Floats, Bools]:
        """Gives the current groups of some rows the devices `actions`.

        Args:
            rows: (n,) which; their episodes are not over.
            actions: (batch,) devices; where the group may not be on its device, it stays.

        Returns:
            Rewards (batch,) and terminations (batch,), zeros in other rows.
        """
        progress, penalty = self.progress, self._rules.memory_penalty
        rewards, terminated = np.zeros(len(actions)), np.zeros(len(actions), dtype=bool)
        # All are evaluated before any goes on: where the evaluator raises, the step can be taken
        # again.
        for number, mine in self._by_problem(rows):
            batch, allowed = self._batches[number], self._problems[number].allowed
            batch.move(mine, *moves(mine, progress.current, actions, batch.devices, allowed))
        for number, mine in self._by_problem(rows):
            problem, batch = self._problems[number], self._batches[number]
            allowed, outcomes = problem.allowed, batch.outcomes
            advance(
                mine,
                progress,
                penalised_time(problem, outcomes, penalty),
                outcomes.step_time,
                outcomes.peak_memory,
                outcomes.feasible,
                batch.devices,
                allowed,
                self._rules.reward == "terminal",
                rewards,
                terminated,
            )
            update_node_features(
                self.observations["node_features"],
                mine,
                batch.devices,
                outcomes.group_start,
                outcomes.step_time,
                progress.chosen,
                progress.current,
            )
            self._write_device_features(batch, mine)
            self._note_measured(problem, mine, batch.devices)
        return rewards, terminated

    def observe(self, row: int) -> Observation:
        """A copy of the observation of one episode."""
        return {key: value[row].copy() for key, value in self.observations.items()}

    def inform(self, row: int) -> dict[str, Any]:
        """The info of one episode."""
        progress = self.progress
        info = {
            "step_time": float(progress.step_time[row]),
            "best_step_time": float(progress.best_step_time[row]),
            "best_placement": progress.best_placement[row].copy(),
            "peak_memory": progress.peak_memory[row].copy(),
            "feasible": bool(progress.feasible[row]),
            "graph": self.infos["graph"][row],
        }
        if self._measuring is not None:
            info["interval"] = self.infos["interval"][row].copy()
            info["steps_measured"] = int(self.infos["steps_measured"][row])
            info["reason"] = self.infos["reason"][row]
        return info

    def problem(self, row: int) -> PlacementProblem:
        """The problem of one episode; the first one before the first reset."""
        return self._problems[int(self._problem[row])]

    def placements(self, row: int) -> Ints:
        """(batch, num_groups) placements of the problem of one episode, its own in its row.

        They change in place.
        """
        return self._batches[int(self._problem[row])].devices

    def evaluated(self, rows: Ints) -> tuple[Ints, Outcomes]:
        """(n, num_groups) devices of some episodes of one problem, and what came of them; copies.

        Args:
            rows: (n,) which, at least one.
        """
        batch = self._batches[int(self._problem[rows[0]])]
        return batch.devices[rows], batch.outcomes.of(rows)

    def render(self, row: int, mode: str | None) -> Any:
        """The schedule of one episode as `render` of the viewer has it; None before a reset."""
        if mode is None or not self.progress.length[row]:
            return None
        return render(self.problem(row), self._batches[self._problem[row]].devices[row], mode)

    def _by_problem(self, rows: Ints) -> Iterator[tuple[int, Ints]]:
        """The rows of each problem that has some."""
        if len(self._problems) > 1:
            numbers = self._problem[rows]
            for number in np.unique(numbers).tolist():
                yield number, rows[numbers == number]
        elif len(rows):
            yield 0, rows

    def _place(self, number: int, rows: Ints, devices: Ints) -> None:
        """Puts the groups of some rows of one problem where their episodes start."""
        problem, batch, progress = self._problems[number], self._batches[number], self.progress
        batch.place(rows, devices)
        outcomes, groups = batch.outcomes, problem.num_groups
        cost = penalised_time(problem, outcomes, self._rules.memory_penalty)[rows]
        step_time = outcomes.step_time[rows]
        progress.cost[rows] = progress.best_cost[rows] = cost
        progress.step_time[rows] = progress.best_step_time[rows] = step_time
        progress.scale[rows] = 1.0
        if self._rules.reward_scale == "relative":
            progress.scale[rows[step_time > 0]] = step_time[step_time > 0]
        progress.best_placement[rows, :groups] = devices
        progress.peak_memory[rows] = outcomes.peak_memory[rows]
        progress.feasible[rows] = outcomes.feasible[rows]
        self.observations["node_features"][rows, :groups] = node_features(
            self._static[number],
            devices,
            outcomes.group_start[rows],
            step_time,
            progress.current[rows],
            np.zeros((len(rows), groups), dtype=bool),
        )
        self._write_device_features(batch, rows)
        self._note_measured(problem, rows, batch.devices)

    def _write_device_features(self, batch: EvaluatedBatch, rows: Ints) -> None:
        if not isinstance(batch, ScheduledBatch):
            return
        progress = self.progress
        batch.write(
            rows,
            progress.current,
            progress.visited,
            progress.taken,
            self.observations["device_features"],
        )

    def _note_measured(self, problem: PlacementProblem, rows: Ints, devices: Ints) -> None:
        """Writes into the infos of some rows what the runs of their placements yielded."""
        if self._measuring is None:
            return
        for row in rows.tolist():
            measurement = self._measuring.measurement(problem, devices[row])
            self.infos["interval"][row] = measurement.interval
            self.infos["steps_measured"][row] = len(measurement.samples)
            self.infos["reason"][row] = measurement.reason
