"""Run directories: what a training run leaves, always whole."""

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as save_tensors
from torch import nn

from placeto.errors import PlacetoError
from placeto.files import read_bytes, write_bytes
from placeto.models.network import Network
from placeto.models.pairwise import PairwisePolicy, PairwiseShape
from placeto.models.policy import PlacetoPolicy, PolicyConfig
from placeto.models.stored import (
    PAIRWISE,
    POLICY_FORMAT,
    POLICY_VERSION,
    read_pairwise,
    read_policy,
)

RUN_FILES = ("config.json", "metrics.jsonl", "policy.safetensors", "policy.json", "trainer.pt")


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Writes JSON that people read too."""
    write_bytes(path, (json.dumps(document, indent=2) + "\n").encode())


def save_policy(directory: Path, policy: Network, card: dict[str, Any]) -> None:
    """Writes `policy.safetensors` and, after it, `policy.json`.

    Args:
        directory: an existing folder.
        policy: whose weights are written.
        card: what else the JSON says: graphs, cluster, training.
    """
    write_bytes(directory / "policy.safetensors", save_tensors(_contiguous(policy)))
    document = {"format": POLICY_FORMAT, "version": POLICY_VERSION}
    write_document(
        directory / "policy.json", document | {"policy": policy.config.to_document()} | card
    )


def load_policy(source: str | Path) -> PlacetoPolicy | PairwisePolicy:
    """Reads a policy of Placeto's or a pairwise one.

    Args:
        source: a run directory, or the name of a policy that ships with the package.

    Raises:
        PlacetoError: files are missing, broken, or do not fit together.
    """
    stored = read_policy(source)
    if stored.card["policy"].get("kind") == PAIRWISE:
        stored = read_pairwise(source)
    shape = dict(stored.card["policy"])
    policy: PlacetoPolicy | PairwisePolicy
    try:
        if shape.pop("kind", None) == PAIRWISE:
            policy = PairwisePolicy(PairwiseShape(**shape))
        else:
            policy = PlacetoPolicy(PolicyConfig(**shape))
    except TypeError as error:
        raise PlacetoError(
            f"{source}: not a policy's shape, of placeto or pairwise; those of other agents are "
            "for the graph that they were trained on"
        ) from error
    except PlacetoError as error:
        raise PlacetoError(f"{source}: not a policy's shape: {error}") from error
    try:
        policy.load_state_dict({name: torch.tensor(a) for name, a in stored.arrays.items()})
    except RuntimeError as error:
        line = " ".join(str(error).split())
        raise PlacetoError(f"{source}: not the weights of policy.json: {line}") from error
    return policy


def save_state(directory: Path, state: dict[str, Any]) -> None:
    """Writes `trainer.pt`, all that a run needs to go on."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_bytes(directory / "trainer.pt", buffer.getvalue())


def load_state(directory: Path) -> dict[str, Any] | None:
    """Reads `trainer.pt`; None if there is none.

    Raises:
        PlacetoError: the file is broken.
    """
    path = directory / "trainer.pt"
    if not path.exists():
        return None
    file = io.BytesIO(read_bytes(path))
    try:
        with zipfile.ZipFile(file) as archive:  # torch's format; torch does not check its sums
            if (member := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"the checksum of {member} is wrong")
        file.seek(0)
        state = torch.load(file, weights_only=True)
    except (zipfile.BadZipFile, pickle.UnpicklingError, RuntimeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PlacetoError(
            f"{path}: broken resume state ({line}); give another directory to start anew"
        ) from error
    if not isinstance(state, dict):
        raise PlacetoError(f"{path}: not a resume state; give another directory to start anew")
    return state


def remove_leftovers(directory: Path) -> None:
    """Removes what a kill in the middle of a write left: files of temporary names."""
    for name in RUN_FILES:
        for path in directory.glob(f".{name}.*"):
            path.unlink(missing_ok=True)


def _contiguous(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
