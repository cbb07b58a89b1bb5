"""A controller: computes one gradient after the other, with workers of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.support.crew import Crew
from placeto.training.distributed.player import Player, Weights, use_one_thread
from placeto.training.distributed.synchronous import Players, SynchronousTrainer
from placeto.training.trainer import UpdateReport


@dataclass(frozen=True, eq=False)
class Assignment:
    """An update whose gradient is wanted.

    Attributes:
        weights: of the policy.
        controller: what the controller remembers: `rng`, the state of its random numbers, and
            `baselines` of the problems.
        number: of the update, from 0; whose turn it is among the problems follows from it.
        progress: how much of the run is over; None: by the number.
    """

    weights: Weights
    controller: dict[str, Any]
    number: int
    progress: float | None


@dataclass(frozen=True, eq=False)
class Contribution:
    """A gradient, and how it came about.

    Attributes:
        gradients: of each parameter, clipped.
        controller: what the controller remembers from now on.
        report: of the update, as if there were no others.
        index: which problem's.
        best: least penalised step time of the episodes, in seconds.
        evaluations: placements evaluated.
        steps: of the episodes.
    """

    gradients: list[torch.Tensor]
    controller: dict[str, Any]
    report: UpdateReport
    index: int
    best: float
    evaluations: int
    steps: int


class Controller:
    """Computes gradients; what it remembers from one to the next comes with the assignment.

    Args:
        problems: of the run.
        config: of the run.
        players: its workers.
    """

    def __init__(
        self, problems: Sequence[PlacementProblem], config: LearningConfig, players: Players
    ) -> None:
        self._trainer = SynchronousTrainer(problems, config, players=players)
        self._trainer.optimizer = _Unmoved(self._trainer.policy.parameters())

    def __call__(self, assignment: Assignment) -> Contribution:
        """Plays the episodes of an update and computes its gradient."""
        trainer = self._trainer
        problems = len(trainer.problems)
        trainer.restore(
            {
                "policy": assignment.weights,
                "optimizer": trainer.optimizer.state_dict(),
                **assignment.controller,
                "updates": assignment.number,
                "episodes": 0,
                "evaluations": 0,
                "best": [torch.inf] * problems,
            }
        )
        trainer.steps = 0
        report = trainer.step(assignment.progress)
        state = trainer.state()
        index = assignment.number % problems
        return Contribution(
            gradients=[
                parameter.grad.clone()
                for parameter in trainer.policy.parameters()
                if parameter.grad is not None
            ],
            controller={"rng": state["rng"], "baselines": state["baselines"]},
            report=report,
            index=index,
            best=trainer.best[index],
            evaluations=trainer.evaluations,
            steps=trainer.steps,
        )


def start_controller(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    make_evaluator: Callable[[], Evaluator],
    options: Sequence[Sequence[Mapping[str, Any]]],
    number: int,
) -> Controller:
    """A controller in a process of its own, on one thread, with workers in others.

    Args:
        problems: of the run.
        config: of the run.
        make_evaluator: makes what the workers turn placements into step times with.
        options: of the workers of each controller.
        number: of the controller.
    """
    use_one_thread()
    players = Crew(partial(Player, problems, config, make_evaluator), options[number])
    return Controller(problems, config, players)


class _Unmoved(torch.optim.Adam):
    """Leaves the parameters as they are, and their gradients to be read."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Does nothing."""
