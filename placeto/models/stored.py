"""Trained policies as files, read without torch: a card in JSON and weights in safetensors."""

import os.path
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from placeto import bundle
from placeto.errors import PlacetoError
from placeto.features.groups import GROUP_ATTRIBUTES
from placeto.features.pairs import GROUP_FEATURES, PAIR_FEATURES, Features
from placeto.files import check_format, read_bytes, read_json

POLICY_FORMAT = "placeto.policy"
POLICY_VERSION = 1
PAIRWISE = "pairwise"
LARGEST = 4096  # of a pairwise policy's widths and rounds


@dataclass(frozen=True, eq=False)
class StoredPolicy:
    """What the files of a policy hold.

    Attributes:
        source: where it was read from.
        card: what `policy.json` says: the shape, what it was trained on, its results.
        arrays: the weights, by name.
    """

    source: str
    card: dict[str, Any]
    arrays: dict[str, Features]


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
    card_path, weights_path = _paths(source)
    card = read_json(card_path)
    check_format(card, POLICY_FORMAT, POLICY_VERSION, str(card_path))
    if not isinstance(card.get("policy"), dict):
        raise PlacetoError(f"{card_path}: has no policy's shape")
    try:
        arrays = load(read_bytes(weights_path))
    except SafetensorError as error:
        line = " ".join(str(error).split())
        raise PlacetoError(
            f"{weights_path}: not the weights of {card_path.name}: {line}"
        ) from error
    return StoredPolicy(str(source), card, arrays)


def read_pairwise(source: str | Path) -> StoredPolicy:
    """Reads a pairwise policy, whose arrays are those of `PairwisePolicy`.

    Raises:
        PlacetoError: no policy, another kind of policy, or weights of another shape.
    """
    stored = read_policy(source)
    shape = stored.card["policy"]
    if shape.get("kind") != PAIRWISE:
        raise PlacetoError(
            f"{source}: is not a pairwise policy, which can place any graph on any cluster; train "
            "one by `placeto train --agent pairwise`"
        )
    for name in ("hidden", "embedding", "width", "rounds"):
        value = shape.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
            raise PlacetoError(
                f"{source}: the policy's {name} is {value!r}, expected a whole number from 1 to "
                f"{LARGEST}"
            )
    expected = _shapes(shape["hidden"], shape["embedding"], shape["width"])
    found = {name: array.shape for name, array in stored.arrays.items()}
    if found != expected:
        wrong = sorted(
            name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
        )
        raise PlacetoError(f"{source}: weights of another shape than its card's: {wrong[0]}")
    for name, array in stored.arrays.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise PlacetoError(f"{source}: weights that are not finite 32-bit floats: {name}")
    return stored


def _paths(source: str | Path) -> tuple[Path, Path]:
    folder, known = Path(source), bundled_policies()
    if str(source) in known:
        card = bundle.FOLDERS["policies"] / f"{source}.json"
        return card, card.with_suffix(".safetensors")
    if os.path.isdir(folder):  # unlike Path.is_dir, False for a name that no folder can have
        return folder / "policy.json", folder / "policy.safetensors"
    raise PlacetoError(
        f"{source}: no run directory, and no bundled policy; bundled policies: "
        f"{', '.join(known) or 'none'}"
    )


def _shapes(hidden: int, embedding: int, width: int) -> dict[str, tuple[int, ...]]:
    inputs = 2 * PAIR_FEATURES + GROUP_FEATURES + embedding
    linear = {
        "enter": (width, GROUP_ATTRIBUTES),
        "down": (width, width + 1),
        "up": (width, width + 1),
        "mix": (width, 3 * width),
        "leave": (embedding, width),
        "first": (hidden, inputs),
        "second": (hidden, hidden),
    }
    shapes: dict[str, tuple[int, ...]] = {"last.weight": (1, hidden)}
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes
