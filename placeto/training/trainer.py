"""The training loop: rollouts, gradient steps, schedules."""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
import torch

from placeto.models.agent import Episodes, Teacher
from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, Outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.training.returns import Baselines, returns_to_go
from placeto.training.update import update

MAX_GROUPS = 1024


def check_size(problem: PlacementProblem) -> None:
    """Makes sure that an agent can go through a problem's groups in reasonable time and memory.

    Raises:
        PlacetoError: there are more than `MAX_GROUPS`.
    """
    if problem.num_groups > MAX_GROUPS:
        raise PlacetoError(
            f"{problem.graph.name}: {problem.num_groups} groups are too many for an agent that "
            f"takes a step for each; give a grouping of at most {MAX_GROUPS}, such as auto"
        )


@dataclass(frozen=True)
class UpdateReport:
    """What one update of a training run did.

    Attributes:
        update: its number, from 1.
        graph: which problem's episodes it used.
        cluster: of that problem.
        step_time: mean of the episodes' last placements, in seconds.
        best_step_time: least penalised step time of that problem since the start, in seconds.
        mean_return: mean total reward of the episodes.
        entropy: of the policy that played them, in nats a state.
        gradient_norm: before clipping, of the first epoch where there are several.
        learning_rate: of this update.
        episodes: since the start.
        evaluations: placements evaluated since the start.
        steps_per_second: steps of the episodes of this update by its wall-clock seconds; where an
            episode is one placement, placements.
    """

    update: int
    graph: str
    cluster: str
    step_time: float
    best_step_time: float
    mean_return: float
    entropy: float
    gradient_norm: float
    learning_rate: float
    episodes: int
    evaluations: int
    steps_per_second: float


class Trainer:
    """Trains one agent on one or several problems, in turn, a problem an update.

    Args:
        problems: what to place.
        config: how to train, and which agent.
        evaluate: turns placements into step times.
        visit: told of every batch of placements that is evaluated, and of which problem.
        starts: (num_groups,) where the episodes of each problem start; default: as the agent is
            configured.
        tick: called often during gradient steps; what it raises leaves the policy as it was before
            the present one.
        teacher: gives the placements that agents which imitate begin with; without one they learn
            by reinforcement alone.

    Raises:
        PlacetoError: no problem, too many groups, or problems that the agent cannot be trained on
            together.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        evaluate: Evaluator = simulate_many,
        visit: Callable[[PlacementProblem, Ints, Outcomes], None] | None = None,
        starts: Sequence[Ints | None] | None = None,
        tick: Callable[[], None] = lambda: None,
        teacher: Teacher | None = None,
    ) -> None:
        if not problems:
            raise PlacetoError("no problem to train on")
        for problem in problems:
            check_size(problem)
        self.problems = list(problems)
        self.config = config
        self._visit = visit
        self._tick = tick
        self._starts: list[Ints | None] = [None] * len(problems) if starts is None else [*starts]
        self.rng = np.random.default_rng(config.seed)
        kind = agent_of(config)
        with torch.random.fork_rng():
            torch.manual_seed(config.seed)
            self.agent = kind.make(self.problems, config, evaluate, teacher)
        self.policy = self.agent.network
        self._turns = np.arange(len(problems))
        if kind.any_cluster:
            # Neighbours in a long list of problems are alike: their gradients would be, too.
            self._turns = np.random.default_rng(config.seed).permutation(len(problems))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=config.learning_rate)
        self.baselines = Baselines(config)
        self.updates = 0
        self.episodes = 0
        self.evaluations = 0
        self.best = [np.inf] * len(problems)

    def step(self, progress: float | None = None) -> UpdateReport:
        """Runs the episodes of one update and takes the gradient step, or steps.

        Args:
            progress: how much of the run is over, from 0 to 1, for the schedules; default: by the
                number of updates.

        Raises:
            PlacetoError: the gradient is not finite; the policy is left as it was before that
                gradient step.
        """
        began = time.perf_counter()
        config = self.config
        if progress is None:
            progress = self.updates / max(config.updates - 1, 1)
        progress = min(progress, 1.0)
        rate = config.learning_rate + progress * (config.final_learning_rate - config.learning_rate)
        for settings in self.optimizer.param_groups:
            settings["lr"] = rate
        index = int(self._turns[self.updates % len(self.problems)])
        problem = self.problems[index]
        lesson: Episodes | None = self.agent.lesson(
            index, self.updates // len(self.problems), progress
        )
        if lesson is None:
            rollout = self.roll_out(index, episodes=config.episodes)
            advantages = self.baselines.advantages(str(index), returns_to_go(rollout.rewards))
        else:  # to become likelier, all that the teacher does
            rollout = lesson
            advantages = np.ones(rollout.rewards.shape)
            self.best[index] = min(self.best[index], float(rollout.best_cost.min()))
        at_once = self.agent.states_at_once(index)
        statistics = update(
            self.policy,
            self.optimizer,
            lambda part: self.agent.terms(index, rollout, part),
            [slice(first, first + at_once) for first in range(0, advantages.size, at_once)],
            advantages,
            entropy_bonus=0.0 if lesson is not None else config.entropy_bonus * (1 - progress),
            gradient_norm=config.gradient_norm,
            epochs=config.epochs if config.algorithm == "ppo" else 1,
            clip=config.clip,
            tick=self._tick,
        )
        self.updates += 1
        self.episodes += rollout.rewards.shape[1]
        return UpdateReport(
            update=self.updates,
            graph=problem.graph.name,
            cluster=problem.cluster.name,
            step_time=float(rollout.step_time.mean()),
            best_step_time=self.best[index],
            mean_return=float(rollout.rewards.sum(axis=0).mean()),
            entropy=statistics.entropy,
            gradient_norm=statistics.gradient_norm,
            learning_rate=rate,
            episodes=self.episodes,
            evaluations=self.evaluations,
            steps_per_second=rollout.rewards.size / (time.perf_counter() - began),
        )

    def start_from(self, index: int, devices: Ints) -> None:
        """Makes the next episodes of problem `index` start from other devices.

        The returns of episodes that started elsewhere are forgotten: they are no baseline for
        these.
        """
        self._starts[index] = devices
        self.baselines.past.pop(str(index), None)

    def roll_out(
        self, index: int, *, episodes: int, greedy: bool = False, start: Ints | None = None
    ) -> Episodes:
        """Plays episodes of problem `index`; see `Agent.roll_out`."""
        problem = self.problems[index]

        def count(devices: Ints, outcomes: Outcomes) -> None:
            self.evaluations += len(devices)
            if self._visit is not None:
                self._visit(problem, devices, outcomes)

        rollout: Episodes = self.agent.roll_out(
            index,
            self.rng,
            episodes=episodes,
            greedy=greedy,
            start=self._starts[index] if start is None else start,
            visit=count,
        )
        self.evaluations += rollout.unreported
        self.best[index] = min(self.best[index], float(rollout.best_cost.min()))
        return rollout

    def state(self) -> dict[str, Any]:
        """All that another trainer of the same problems needs to go on just as this one would.

        It is a copy: what this trainer does later does not change it.
        """
        return {
            "policy": copy.deepcopy(self.policy.state_dict()),
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
            "rng": self.rng.bit_generator.state,
            "baselines": {
                key: torch.from_numpy(past.copy()) for key, past in self.baselines.past.items()
            },
            "updates": self.updates,
            "episodes": self.episodes,
            "evaluations": self.evaluations,
            "best": list(self.best),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a state.

        Raises:
            PlacetoError: the state is of other problems or another policy.
        """
        try:
            self.policy.load_state_dict(state["policy"])
            self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
            self.rng.bit_generator.state = state["rng"]
            self.baselines.past = {key: past.numpy() for key, past in state["baselines"].items()}
            self.updates, self.episodes = state["updates"], state["episodes"]
            self.evaluations, self.best = state["evaluations"], list(state["best"])
        except (LookupError, RuntimeError, ValueError, TypeError, AttributeError) as error:
            line = shorten(str(error), 200, placeholder=" …")
            raise PlacetoError(f"the resume state does not fit this run: {line}") from error
