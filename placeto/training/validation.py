"""Which policy of a run is the best on problems that it is not trained on."""

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from placeto.heuristics.initial import single_devices
from placeto.models.agent import Wanted
from placeto.models.agents import agent_of
from placeto.models.network import Network
from placeto.models.settings import LearningConfig
from placeto.objective import penalised_time
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.support.errors import PlacetoError


@dataclass(frozen=True)
class Validated:
    """How good the policy of one checkpoint is.

    Of each problem there is a ratio: penalised step time of what a greedy episode finds, over that
    of the best single device.
    """

    updates: int  # of the run, when it was the policy
    ratio: float  # geometric mean of `ratios`
    ratios: tuple[float, ...]


class Validation:
    """Greedy episodes on problems that a run is not trained on; keeps the best policy.

    Args:
        problems: on which to compare policies.
        config: of the run.
        evaluate: turns placements into step times.
        policy: of the run.

    Raises:
        PlacetoError: the policy's network does not fit these problems.

    Attributes:
        updates: of the run when its policy was last validated; 0 before that.
        best: of the policies validated so far the first that none is better than.
        history: number of updates and geometric mean of each.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        evaluate: Evaluator,
        policy: Network,
    ) -> None:
        self.updates = 0
        self.best: Validated | None = None
        self.history: list[tuple[int, float]] = []
        self._problems = problems
        self._config = config
        self._best_weights: dict[str, Any] = {}
        with torch.random.fork_rng():
            self._agent = agent_of(config).make(problems, config, evaluate)
        try:
            self._agent.network.load_state_dict(policy.state_dict())
        except RuntimeError as error:
            raise PlacetoError(
                f"{problems[0].graph.name} on {problems[0].cluster.name}: the network in training "
                "is of another size, so that this is no problem to validate it on"
            ) from error
        # Penalised step times of the best single devices, in seconds.
        self._single: list[float] = []
        for problem in problems:
            outcomes = evaluate(problem, single_devices(problem))
            costs = penalised_time(problem, outcomes, config.memory_penalty)
            self._single.append(float(costs.min()))

    def due(self, updates: int) -> bool:
        """Whether the policy after so many updates is one to validate, and has not been."""
        last = updates == self._config.updates
        return updates != self.updates and (last or updates % self._config.checkpoint_every == 0)

    def check(self, policy: Network, updates: int) -> Validated:
        """Finds how good the run's policy is after some updates; keeps it if it is the best."""
        ratios = self.ratios(policy)
        mean = float(np.exp(np.mean(np.log(ratios))))
        validated = Validated(updates, mean, ratios)
        if self.best is None or mean < self.best.ratio:
            self._best_weights = copy.deepcopy(policy.state_dict())
            self.best = validated
        self.history.append((updates, mean))
        self.updates = updates
        return validated

    def ratios(self, policy: Network) -> tuple[float, ...]:
        """How good a policy is on each problem; see `Validated`."""
        self._agent.network.load_state_dict(policy.state_dict())
        rng = np.random.default_rng(self._config.seed)
        costs = [
            float(self._agent.roll_out(Wanted(index, 1, greedy=True), rng).best_cost[0])
            for index in range(len(self._problems))
        ]
        return tuple(np.divide(costs, self._single).tolist())

    def best_policy(self) -> Network:
        """A network with the weights of the best policy so far."""
        self._agent.network.load_state_dict(self._best_weights)
        return self._agent.network

    def card(self) -> dict[str, Any]:
        """What `policy.json` says of the best policy so far."""
        assert self.best is not None
        rows = [
            {"graph": problem.graph.name, "cluster": problem.cluster.name, "ratio": ratio}
            for problem, ratio in zip(self._problems, self.best.ratios, strict=True)
        ]
        return {"ratio": self.best.ratio, "problems": rows, "history": self.history}

    def state(self) -> dict[str, Any]:
        """All that another one for the same problems needs to go on just as this one would."""
        return {
            "updates": self.updates,
            "best": None if self.best is None else asdict(self.best),
            "weights": self._best_weights,
            "history": list(self.history),
        }

    def restore(self, state: Any) -> None:
        """Goes on from a state.

        Raises:
            PlacetoError: it is none.
        """
        try:
            self.updates, self._best_weights = state["updates"], state["weights"]
            self.best = None if state["best"] is None else Validated(**state["best"])
            self.history = list(state["history"])
        except (LookupError, TypeError) as error:
            raise PlacetoError(f"the resume state does not fit this run: {error}") from error
