"""Trained policies as files: a card in JSON and weights in safetensors. Torch is imported late."""

import json
import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from safetensors import SafetensorError
from safetensors.numpy import load, save

from placeto.models.agents import AGENTS, find_agent
from placeto.models.kind import AgentKind
from placeto.models.settings import LearningConfig, Settings
from placeto.problem import PlacementProblem
from placeto.support import bundle
from placeto.support.arrays import Features
from placeto.support.documents import Document, check_format, from_value
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, read_json, write_bytes

if TYPE_CHECKING:
    from placeto.models.network import Network

POLICY_FORMAT: Literal["placeto.policy"] = "placeto.policy"
POLICY_VERSION = 1
Shape = TypeVar("Shape", bound=Settings)


class PolicyDocument(Document, kw_only=True):
    """`policy.json`, as far as any policy has it.

    Attributes:
        policy: `kind`, the agent's name, and the shape of its network.
        training: the settings that it was trained with.
        problems: what it was trained on, by graph and cluster.
    """

    format: Literal["placeto.policy"] = POLICY_FORMAT
    version: int = POLICY_VERSION
    policy: dict[str, Any]
    training: dict[str, Any] | None = None
    problems: list[dict[str, Any]] | None = None


@dataclass(frozen=True, eq=False)
class StoredPolicy:
    """What the files of a policy hold."""

    source: str  # where it was read from
    card: dict[str, Any]  # `policy.json`: the shape, what it was trained on, its results
    arrays: dict[str, Features]  # the weights, by name

    @property
    def agent(self) -> str:
        """The name of the agent that it is a policy of."""
        return str(self.card["policy"]["kind"])

    def shape(self, kind: type[Shape]) -> Shape:
        """The shape of its network, by the class of an agent's.

        Raises:
            PlacetoError: the card has another one.
        """
        shape = {key: value for key, value in self.card["policy"].items() if key != "kind"}
        try:
            return kind(**shape)
        except (TypeError, PlacetoError) as error:
            raise PlacetoError(f"{self.source}: not a policy's shape: {error}") from error


def bundled_policies() -> list[str]:
    """The names of the policies that ship with the package, sorted."""
    return bundle.names("policies", (".json",))


def read_policy(source: str | Path) -> StoredPolicy:
    """Reads the policy of a run directory, or a bundled one.

    Args:
        source: a bundled name, or a directory with `policy.json` and `policy.safetensors`. What
            is bundled comes first, as nobody names it who runs the placers that begin with it:
            `./NAME` is a directory of such a name.

    Raises:
        PlacetoError: neither, or the files are broken.
    """
    folder, known = Path(source), bundled_policies()
    if str(source) in known:
        card_path = bundle.FOLDERS["policies"] / f"{source}.json"
        weights_path = card_path.with_suffix(".safetensors")
    elif os.path.isdir(folder):  # unlike Path.is_dir, False for a name that no folder can have
        card_path, weights_path = folder / "policy.json", folder / "policy.safetensors"
    else:
        raise PlacetoError(
            f"{source}: no run directory, and no bundled policy; bundled policies: "
            f"{', '.join(known) or 'none'}"
        )
    card = read_json(card_path)
    check_format(card, POLICY_FORMAT, POLICY_VERSION, str(card_path))
    kind = from_value(card, PolicyDocument, str(card_path)).policy.get("kind")
    if kind not in AGENTS:
        raise PlacetoError(
            f"{card_path}: the policy's kind is {kind!r}, expected one of {', '.join(AGENTS)}"
        )
    try:
        arrays = load(read_bytes(weights_path))
    except SafetensorError as error:
        line = " ".join(str(error).split())
        raise PlacetoError(
            f"{weights_path}: not the weights of {card_path.name}: {line}"
        ) from error
    return StoredPolicy(str(source), card, arrays)


def save_policy(directory: Path, policy: "Network", card: dict[str, Any]) -> None:
    """Writes `policy.safetensors` and, after it, `policy.json` into an existing folder.

    Args:
        directory: the folder.
        policy: whose weights are written.
        card: what else the JSON says: graphs, cluster, training.
    """
    arrays = {name: tensor.numpy().copy() for name, tensor in policy.state_dict().items()}
    write_bytes(directory / "policy.safetensors", save(arrays))
    shape = {"kind": policy.agent, **policy.config.to_document()}
    document = {"format": POLICY_FORMAT, "version": POLICY_VERSION, "policy": shape}
    write_document(directory / "policy.json", document | card)


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Writes JSON that people read too."""
    write_bytes(path, (json.dumps(document, indent=2) + "\n").encode())


def load_policy(source: str | Path) -> "Network":
    """The network of a stored policy, of an agent whose policies place other graphs, too.

    Args:
        source: a run directory, or the name of a policy that ships with the package.

    Raises:
        PlacetoError: files are missing, broken, or do not fit together.
    """
    return _network(read_policy(source))


def _network(stored: StoredPolicy) -> "Network":
    policy = find_agent(stored.agent).policy
    if policy is None:
        raise PlacetoError(
            f"{stored.source}: a policy of {stored.agent} is for the graph that it was trained on"
        )
    network: Network = resolve_name(policy).of(stored)
    return network


@dataclass(frozen=True, eq=False)
class Trained:
    """A policy and how it was trained."""

    policy: "Network"
    config: LearningConfig  # how it was trained; how its episodes run
    card: dict[str, Any]  # `policy.json`

    @property
    def agent(self) -> AgentKind:
        """Whose policy it is."""
        return find_agent(self.policy.agent)

    def trained_on(self, key: str) -> set[str]:
        """Names of each `graph`, or `cluster`, that it was trained on."""
        return {row[key] for row in self.card["problems"]}


def check_shape(trained: Trained, needs: Mapping[str, Any], problem: PlacementProblem) -> None:
    """Raises a `PlacetoError` if a policy's network is not as a problem needs it."""
    has = trained.policy.config.to_document()
    for key, needed in needs.items():
        if has.get(key) != needed:
            raise PlacetoError(
                f"the policy is made for {key} = {has.get(key)}, but {problem.graph.name} on "
                f"{problem.cluster.name} needs {key} = {needed}"
            )


def load_trained(source: str | Path) -> Trained:
    """Reads a policy with its card; see `load_policy`."""
    stored = read_policy(source)
    policy, card = _network(stored), stored.card
    for key in ("training", "problems"):
        if key not in card:
            raise PlacetoError(f"{source}: policy.json does not say {key!r}")
    try:
        return Trained(policy, find_agent(stored.agent).config(**card["training"]), card)
    except (TypeError, PlacetoError) as error:
        raise PlacetoError(
            f"{source}: training in policy.json is not the settings of a run: {error}"
        ) from error
