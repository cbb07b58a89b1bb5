"""Trained policies with all that is known of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeto.errors import PlacetoError
from placeto.models.network import Network
from placeto.models.policy import PlacetoPolicy
from placeto.models.stored import read_policy
from placeto.problem import PlacementProblem
from placeto.training.checkpoint import load_policy
from placeto.training.config import LearningConfig, PairwiseConfig, TrainingConfig


@dataclass(frozen=True, eq=False)
class Trained:
    """A policy and how it was trained.

    Attributes:
        policy: the network.
        config: how it was trained; how its episodes run.
        card: `policy.json`.
    """

    policy: Network
    config: LearningConfig
    card: dict[str, Any]

    @property
    def graphs(self) -> set[str]:
        """Names of the graphs that it was trained on."""
        return {row["graph"] for row in self.card["problems"]}

    @property
    def clusters(self) -> set[str]:
        """Names of the clusters that it was trained on."""
        return {row["cluster"] for row in self.card["problems"]}


def check_shape(trained: Trained, needs: Mapping[str, Any], problem: PlacementProblem) -> None:
    """Makes sure that a policy's network is as a problem needs it.

    Raises:
        PlacetoError: it is not.
    """
    has = trained.policy.config.to_document()
    for key, needed in needs.items():
        if has.get(key) != needed:
            raise PlacetoError(
                f"the policy is made for {key} = {has.get(key)}, but {problem.graph.name} on "
                f"{problem.cluster.name} needs {key} = {needed}"
            )


def load_trained(source: str | Path) -> Trained:
    """Reads a policy with its card.

    Args:
        source: a run directory, or the name of a policy that ships with the package.

    Raises:
        PlacetoError: files are missing, broken, or do not fit together.
    """
    policy, card = load_policy(source), read_policy(source).card
    kind = TrainingConfig if isinstance(policy, PlacetoPolicy) else PairwiseConfig
    for key in ("training", "problems"):
        if key not in card:
            raise PlacetoError(f"{source}: policy.json does not say {key!r}")
    try:
        return Trained(policy, kind(**card["training"]), card)
    except (TypeError, PlacetoError) as error:
        raise PlacetoError(
            f"{source}: training in policy.json is not the settings of a run: {error}"
        ) from error
