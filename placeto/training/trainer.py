"""The training loop: rollouts, gradient steps, schedules.

Policies learn by REINFORCE (Williams 1992), or by PPO. PPO is proximal policy optimisation
(Schulman et al. 2017, arXiv:1707.06347) without a critic: the advantages are REINFORCE's, returns
less a baseline, the same in every epoch. An epoch is one gradient step on all states, where the
paper takes minibatches of them. In the first all ratios are 1, and its step is REINFORCE's.
"""

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placeto.models.agent import Played, Teacher, Wanted
from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, Outcomes, simulate_many
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError
from placeto.support.threads import in_threads, one_thread_an_operation

MAX_GROUPS = 1024


def check_size(problem: PlacementProblem) -> None:
    """Raises a `PlacetoError` if there are too many groups for reasonable time and memory."""
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
        self.baselines = Baselines(config)
        self.updates = 0
        self.episodes = 0
        self.evaluations = 0
        self.best = [np.inf] * len(problems)

    @cached_property
    def optimizer(self) -> torch.optim.Adam:
        """Made where it is needed: torch reads its compiler in for it, which takes seconds."""
        return torch.optim.Adam(self.policy.parameters(), lr=self.config.learning_rate)

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
        lesson = self.agent.lesson(index, self.updates // len(self.problems), progress)
        if lesson is None:
            rollout = self.roll_out(index, episodes=config.episodes)
            advantages = self.baselines.advantages(str(index), returns_to_go(rollout.rewards))
            bonus = config.entropy_bonus * (1 - progress)
        else:  # to become likelier, all that the teacher does
            rollout = lesson
            advantages, bonus = np.ones(rollout.rewards.shape), 0.0
            self._compare(index, rollout)
        entropy, gradient_norm = self.update(index, rollout, advantages, bonus)
        self.updates += 1
        self.episodes += rollout.rewards.shape[1]
        return UpdateReport(
            update=self.updates,
            graph=problem.graph.name,
            cluster=problem.cluster.name,
            step_time=float(rollout.step_time.mean()),
            best_step_time=self.best[index],
            mean_return=float(rollout.rewards.sum(axis=0).mean()),
            entropy=entropy,
            gradient_norm=gradient_norm,
            learning_rate=rate,
            episodes=self.episodes,
            evaluations=self.evaluations,
            steps_per_second=rollout.rewards.size / (time.perf_counter() - began),
        )

    @one_thread_an_operation()
    def update(
        self, index: int, played: Played, advantages: Floats, entropy_bonus: float
    ) -> tuple[float, float]:
        """Makes what was done in some episodes likelier, or less so, by its advantage.

        Several parts of the states are computed at once. What `tick` raises leaves the network as
        it was before the present epoch.

        Args:
            index: of their problem.
            played: the episodes.
            advantages: (steps, episodes) of what was done; divided here by their standard
                deviation.
            entropy_bonus: weight of the entropy.

        Returns:
            Of the first epoch, the mean entropy of the policy over the states, in nats, and the
            norm of the gradient before clipping.

        Raises:
            PlacetoError: a gradient is not finite; the network is left as it was before that epoch.
        """
        config, parameters = self.config, list(self.policy.parameters())
        spread = float(advantages.std())
        advantage = torch.from_numpy(advantages / spread if spread > 0 else advantages).flatten()
        states, at_once = len(advantage), self.agent.states_at_once(index)
        parts = [slice(begin, begin + at_once) for begin in range(0, states, at_once)]
        old = torch.full((states,), torch.nan, dtype=torch.float64)
        first: tuple[float, float] | None = None

        def gradient_of(part: slice) -> tuple[float, tuple[Tensor, ...]]:
            taken, uncertainties = self.agent.terms(index, played, part)
            uncertainty = uncertainties.sum()
            if first is None:
                old[part] = taken.detach().double()
                gain = taken * advantage[part]
            else:
                gain = clipped_surrogate(taken, old[part], advantage[part], config.clip)
            loss = -gain.sum() - entropy_bonus * uncertainty
            return float(uncertainty.detach()), torch.autograd.grad(loss / states, parameters)

        for _ in range(config.epochs if config.algorithm == "ppo" else 1):
            entropy, total = 0.0, [torch.zeros_like(parameter) for parameter in parameters]
            with closing(in_threads(gradient_of, parts)) as gradients:
                for uncertainty, gradient in gradients:
                    self._tick()
                    entropy += uncertainty
                    for whole, term in zip(total, gradient, strict=True):
                        whole += term
            for parameter, whole in zip(parameters, total, strict=True):
                parameter.grad = whole
            norm = torch.nn.utils.clip_grad_norm_(parameters, config.gradient_norm)
            if not norm.isfinite():
                raise PlacetoError("the gradient is not finite; a lower learning_rate may help")
            self.optimizer.step()
            first = first or (entropy / states, float(norm))
        assert first is not None
        return first

    def start_from(self, index: int, devices: Ints) -> None:
        """Makes the next episodes of problem `index` start from other devices.

        The returns of episodes that started elsewhere are forgotten: they are no baseline for
        these.
        """
        self._starts[index] = devices
        self.baselines.past.pop(str(index), None)

    def roll_out(
        self, index: int, *, episodes: int, greedy: bool = False, start: Ints | None = None
    ) -> Played:
        """Plays episodes of problem `index`; see `Wanted`."""
        if start is None:
            start = self._starts[index]
        return self.play(Wanted(index, episodes, greedy=greedy, start=start))

    def play(self, wanted: Wanted) -> Played:
        """Plays episodes, and counts what is evaluated."""
        problem = self.problems[wanted.problem]

        def count(devices: Ints, outcomes: Outcomes) -> None:
            self.evaluations += len(devices)
            if self._visit is not None:
                self._visit(problem, devices, outcomes)

        played: Played = self.agent.roll_out(wanted, self.rng, count)
        self.evaluations += played.unreported
        self._compare(wanted.problem, played)
        return played

    def _compare(self, index: int, played: Played) -> None:
        self.best[index] = min(self.best[index], float(played.best_cost.min()))

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


def returns_to_go(rewards: Floats) -> Floats:
    """(steps, episodes) sums of the rewards from each step on (discount 1)."""
    returns: Floats = rewards[::-1].cumsum(axis=0)[::-1]
    return returns


class Baselines:
    """What the returns from each step on are compared with, of each problem.

    Attributes:
        past: of each problem, (steps, n) what is remembered: the returns of the last episodes, or
            one moving average.
    """

    def __init__(self, config: LearningConfig) -> None:
        self._config = config
        self.past: dict[str, Floats] = {}

    def advantages(self, problem: str, returns: Floats) -> Floats:
        """Remembers (steps, episodes) returns; gives them less the baseline of their step.

        A `moving` average is of the updates before this one, and of this one where it is the
        first: the average of the papers by Mirhoseini et al. (2017, arXiv:1706.04972; 2018).
        """
        baseline: Floats
        if self._config.baseline == "moving":
            mean = returns.mean(axis=1, keepdims=True)
            baseline, decay = self.past.get(problem, mean), self._config.baseline_decay
            self.past[problem] = decay * baseline + (1 - decay) * mean
        else:
            keep = max(self._config.baseline_episodes, returns.shape[1])
            past = self.past.get(problem, returns[:, :0])
            recent = np.concatenate([past, returns], axis=1)[:, -keep:]
            self.past[problem] = recent
            baseline = recent.mean(axis=1, keepdims=True)
        return returns - baseline


def clipped_surrogate(taken: Tensor, old: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """min(r A, clip(r, 1 - clip, 1 + clip) A).

    Equation 7 of Schulman et al. 2017 (arXiv:1707.06347).

    Args:
        taken: (n,) log-probabilities of what was done, in nats.
        old: (n,) the same of the policy that did it; no gradient flows back from them.
        advantage: (n,) A.
        clip: how far the ratio r = exp(taken - old) is followed away from 1.

    Returns:
        (n,) what is to become large. It has no gradient where r is above 1 + clip and A is
        positive, or r is below 1 - clip and A is negative.
    """
    ratio = (taken.double() - old).exp()  # of a whole placement it may be beyond single precision
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
