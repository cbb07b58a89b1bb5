"""Asynchronous training: several controllers, and one set of parameters.

The scheme of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972): controllers, each with workers of
its own, share the parameters that a server holds. Each takes them as they are, samples
placements, has its workers evaluate these, and sends the gradient back, which by then may be of
parameters that others have changed.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from placeto.models.agent import Teacher
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.crew import Crew
from placeto.training.distributed.synchronous import (
    Player,
    Players,
    SynchronousTrainer,
    Weights,
    use_one_thread,
)
from placeto.training.trainer import Trainer, UpdateReport


class Assignment(NamedTuple):
    """An update whose gradient is wanted."""

    weights: Weights  # of the policy
    seen: int  # how many updates these had
    number: int  # of all updates, from 0, as they are handed out; whose turn it is follows from it
    progress: float | None  # how much of the run is over; None: by the number
    controller: int  # whose it is
    memory: dict[str, Any]  # its own: `rng`, the state of its random numbers, and `baselines`


class Contribution(NamedTuple):
    """A gradient, and how it came about."""

    gradients: list[torch.Tensor]  # of each parameter, clipped
    memory: dict[str, Any]  # of the controller, from now on
    report: UpdateReport  # as if there were no other updates
    steps: int  # of the episodes


class Controller:
    """Computes gradients; what it remembers from one to the next comes with the assignment."""

    def __init__(
        self, problems: Sequence[PlacementProblem], config: LearningConfig, players: Players
    ) -> None:
        self._trainer = SynchronousTrainer(problems, config, players=players)
        self._trainer.optimizer = _Unmoved(self._trainer.policy.parameters())

    def __call__(self, assignment: Assignment) -> Contribution:
        """Plays the episodes of an update and computes its gradient."""
        trainer = self._trainer
        before = {
            "policy": assignment.weights,
            "optimizer": trainer.optimizer.state_dict(),
            **assignment.memory,
            "updates": assignment.number,
            "episodes": 0,
            "evaluations": 0,
            "best": [torch.inf] * len(trainer.problems),
        }
        trainer.restore(before)
        trainer.steps = 0
        report = trainer.step(assignment.progress)
        state = trainer.state()
        parameters = trainer.policy.parameters()
        gradients = [each.grad.clone() for each in parameters if each.grad is not None]
        memory = {"rng": state["rng"], "baselines": state["baselines"]}
        return Contribution(gradients, memory, report, trainer.steps)


class _Unmoved(torch.optim.Adam):
    """Leaves the parameters as they are, and their gradients to be read."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Does nothing."""


def start_controller(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    make_evaluator: Callable[[], Evaluator],
    options: Sequence[Sequence[Mapping[str, Any]]],
    number: int,
) -> Controller:
    """A controller in a process of its own, on one thread; `options` are of each one's workers."""
    use_one_thread()
    players = Crew(partial(Player, problems, config, make_evaluator), options[number])
    return Controller(problems, config, players)


@dataclass(frozen=True)
class AsynchronousReport(UpdateReport):
    """What an update by one of several controllers did.

    `steps_per_second` is of all controllers: the steps of this update by the seconds since the one
    before it.
    """

    controller: int  # which, from 0
    staleness: int  # updates by others since the parameters that the gradient is of were given out


class AsynchronousTrainer(Trainer):
    """The parameter server: hands out parameters, applies gradients as they come.

    Each controller has random numbers and baselines of its own, which are kept here: one that dies
    leaves nothing but an update to do again. With one controller the result is that of `Trainer`,
    whose arguments it takes; the controllers' workers have evaluators of their own.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        evaluate: Evaluator = simulate_many,
        *,
        teacher: Teacher | None = None,
        controllers: Crew[Assignment, Contribution],
    ) -> None:
        super().__init__(problems, config, evaluate)
        self._crew = controllers
        # The random numbers of the first are those of a run without controllers.
        seeds = [[config.seed], *([config.seed, each] for each in range(1, controllers.size))]
        self._controllers: list[dict[str, Any]] = [
            {"rng": np.random.default_rng(seed).bit_generator.state, "baselines": {}}
            for seed in seeds
        ]
        self._forget()
        self._handed_out = 0
        self._last: float | None = None

    def step(self, progress: float | None = None) -> UpdateReport:
        """Waits for a controller's gradient and applies it.

        Args:
            progress: how much of the run is over, from 0 to 1, for the schedules of what is handed
                out; default: by the number of updates.

        Raises:
            PlacetoError: a gradient is not finite; workers die again and again.
        """
        self._hand_out(progress)
        ticket, contribution = self._crew.take()
        while ticket not in self._under_way:  # of before `restore`
            ticket, contribution = self._crew.take()
        update = self._under_way.pop(ticket)
        self._free.append(update.controller)
        self._controllers[update.controller] = contribution.memory
        report = contribution.report
        for settings in self.optimizer.param_groups:
            settings["lr"] = report.learning_rate
        gradients = contribution.gradients
        for parameter, gradient in zip(self.policy.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        last, self._last = self._last, perf_counter()
        index = update.number % len(self.problems)
        self.best[index] = min(self.best[index], report.best_step_time)
        self.evaluations += report.evaluations
        self.updates += 1
        self.episodes += self.config.episodes
        told = asdict(report) | {
            "update": self.updates,
            "best_step_time": self.best[index],
            "episodes": self.episodes,
            "evaluations": self.evaluations,
        }
        if last is not None:
            told["steps_per_second"] = contribution.steps / (self._last - last)
        staleness = self.updates - 1 - update.seen
        return AsynchronousReport(**told, controller=update.controller, staleness=staleness)

    def state(self) -> dict[str, Any]:
        """All that another one of the same problems needs to go on; what is under way is lost."""
        lost = sorted(update.number for update in self._under_way.values())
        return super().state() | {
            "controllers": list(self._controllers),
            "to_do": [*lost, *self._to_do],
            "handed_out": self._handed_out,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a state."""
        super().restore(state)
        self._controllers = list(state["controllers"])
        self._forget(state["to_do"])
        self._handed_out = state["handed_out"]

    def _forget(self, to_do: Sequence[int] = ()) -> None:
        self._under_way: dict[int, Assignment] = {}
        self._free = deque(range(self._crew.size))
        self._to_do = deque(to_do)

    def _hand_out(self, progress: float | None) -> None:
        while self._free and self.updates + len(self._under_way) < self.config.updates:
            if self._to_do:
                number = self._to_do.popleft()
            else:
                number = self._handed_out
                self._handed_out += 1
            controller = self._free.popleft()
            weights, memory = self.policy.state_dict(), self._controllers[controller]
            update = Assignment(weights, self.updates, number, progress, controller, memory)
            self._under_way[self._crew.submit(update)] = update
