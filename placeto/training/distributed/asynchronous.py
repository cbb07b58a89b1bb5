"""Asynchronous training: several controllers, and one set of parameters.

The scheme of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972): controllers, each with workers of
its own, share the parameters that a server holds. Each takes them as they are, samples
placements, has its workers evaluate these, and sends the gradient back, which by then may be of
parameters that others have changed.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from placeto.models.agent import Teacher
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.crew import Crew
from placeto.training.distributed.controller import Assignment, Contribution
from placeto.training.trainer import Trainer, UpdateReport


@dataclass(frozen=True)
class AsynchronousReport(UpdateReport):
    """What an update by one of several controllers did.

    `steps_per_second` is of all controllers: the steps of this update by the seconds since the one
    before it.

    Attributes:
        controller: which, from 0.
        staleness: how many updates by others came between the parameters that the gradient is of
            and its own.
    """

    controller: int
    staleness: int


@dataclass(frozen=True, eq=False)
class _UnderWay:
    """An update that a controller is at.

    Attributes:
        controller: which.
        number: which of all updates, from 0, in the order in which they are handed out.
        seen: how many updates the parameters had that it was given.
    """

    controller: int
    number: int
    seen: int


class AsynchronousTrainer(Trainer):
    """The parameter server: hands out parameters, applies gradients as they come.

    Each controller has random numbers and baselines of its own, which are kept here: one that dies
    leaves nothing but an update to do again. With one controller the result is that of `Trainer`.

    Args:
        problems: what to place.
        config: how to train, and which agent.
        evaluate: as of `Trainer`; the controllers' workers have their own.
        teacher: none.
        controllers: compute gradients.
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
        self._controllers: list[dict[str, Any]] = [
            {"rng": _generator(config.seed, number).bit_generator.state, "baselines": {}}
            for number in range(controllers.size)
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
        self._apply(contribution)
        self._controllers[update.controller] = contribution.controller
        last, self._last = self._last, perf_counter()
        index = contribution.index
        self.best[index] = min(self.best[index], contribution.best)
        self.evaluations += contribution.evaluations
        self.updates += 1
        self.episodes += self.config.episodes
        report = replace(
            contribution.report,
            update=self.updates,
            best_step_time=self.best[index],
            episodes=self.episodes,
            evaluations=self.evaluations,
            steps_per_second=(
                contribution.report.steps_per_second
                if last is None
                else contribution.steps / (self._last - last)
            ),
        )
        return AsynchronousReport(
            **asdict(report),
            controller=update.controller,
            staleness=self.updates - 1 - update.seen,
        )

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
        self._forget()
        self._to_do.extend(state["to_do"])
        self._handed_out = state["handed_out"]

    def _forget(self) -> None:
        self._under_way: dict[int, _UnderWay] = {}
        self._free = deque(range(self._crew.size))
        self._to_do: deque[int] = deque()

    def _hand_out(self, progress: float | None) -> None:
        while self._free and self.updates + len(self._under_way) < self.config.updates:
            if self._to_do:
                number = self._to_do.popleft()
            else:
                number = self._handed_out
                self._handed_out += 1
            controller = self._free.popleft()
            assignment = Assignment(
                weights=self.policy.state_dict(),
                controller=self._controllers[controller],
                number=number,
                progress=progress,
            )
            ticket = self._crew.submit(assignment)
            self._under_way[ticket] = _UnderWay(controller, number, self.updates)

    def _apply(self, contribution: Contribution) -> None:
        for settings in self.optimizer.param_groups:
            settings["lr"] = contribution.report.learning_rate
        gradients = contribution.gradients
        for parameter, gradient in zip(self.policy.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()


def _generator(seed: int, controller: int) -> np.random.Generator:
    """A controller's random numbers; those of the first are those of a run without controllers."""
    return np.random.default_rng([seed, controller] if controller else seed)
