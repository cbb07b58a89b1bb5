"""The plain Python reference as an evaluator, and an environment that runs it at every step."""

from typing import Any

import gymnasium
import numpy as np

from placeto.envs import DevicePlacementEnv
from placeto.envs.observation import Observation
from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes, simulate_many
from placeto.support.arrays import Floats, Ints
from tests.reference import reference_schedule


def reference_outcomes(problem: PlacementProblem, many: Ints) -> Outcomes:
    """What `simulate_many` returns, worked out by `tests/reference.py`."""
    schedules = [
        reference_schedule(problem.graph, problem.cluster, devices[problem.op_group].tolist())
        for devices in many
    ]
    return Outcomes(
        step_time=np.array([schedule.step_time for schedule in schedules]),
        peak_memory=np.array([schedule.peak_memory for schedule in schedules]),
        group_start=np.stack([
            _group_start(problem, devices, np.array(schedule.start))
            for devices, schedule in zip(many, schedules, strict=True)
        ]),
        feasible=np.array([schedule.feasible for schedule in schedules]),
    )  # fmt: skip


def _group_start(problem: PlacementProblem, devices: Ints, start: Floats) -> Floats:
    """(num_groups,) the first start of an op that takes time, 0 where there is none."""
    works = problem.op_seconds[np.arange(len(start)), devices[problem.op_group]] > 0
    first = np.full(problem.num_groups, np.inf)
    np.minimum.at(first, problem.op_group[works], start[works])
    return np.where(np.isfinite(first), first, 0)


class ReferenceEnv(gymnasium.Wrapper[Observation, int, Observation, int]):
    """`DevicePlacement-v0` that runs the reference at every step, or at every few.

    At the steps between it runs the simulator, which finds the same. `DevicePlacementEnv` asks
    its evaluator nothing if an action keeps the device; here the reference runs then as well.

    Args:
        every: the reference runs at the steps whose number is a multiple of it.
        *arguments: those of `DevicePlacementEnv`.
        **more: likewise.
    """

    def __init__(self, every: int, *arguments: Any, **more: Any) -> None:
        self._placement = DevicePlacementEnv(*arguments, evaluator=self._evaluate, **more)
        super().__init__(self._placement)
        self._every = every
        self._step = -1
        self._asked = False
        self._devices: Ints = np.zeros((1, 0), dtype=np.int64)

    def reset(self, **options: Any) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; by the simulator."""
        self._step = -1
        return self.env.reset(**options)

    def step(self, action: int) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Gives the current group the device `action`."""
        self._step += 1
        self._asked = False
        result = self.env.step(action)
        if not self._asked and self._step % self._every == 0:
            self._evaluate(self._placement.problem, self._devices)
        return result

    def _evaluate(self, problem: PlacementProblem, many: Ints) -> Outcomes:
        self._asked = True
        self._devices = many
        if self._step >= 0 and self._step % self._every == 0:
            return reference_outcomes(problem, many)
        return simulate_many(problem, many)
