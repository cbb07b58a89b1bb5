"""Policies of Placeto's, read and checked without torch."""

from pathlib import Path

import numpy as np

from placeto.envs.features.groups import GROUP_ATTRIBUTES
from placeto.envs.features.pairs import GROUP_FEATURES, PAIR_FEATURES
from placeto.models.stored import StoredPolicy, read_policy
from placeto.support.errors import PlacetoError

LARGEST = 4096  # of a policy's widths and rounds


def read_placeto(source: str | Path) -> StoredPolicy:
    """Reads a policy of Placeto's, whose arrays are those of `PlacetoPolicy`.

    Raises:
        PlacetoError: no policy, one of another agent, or weights of another shape.
    """
    stored = read_policy(source)
    if stored.agent != "placeto":
        raise PlacetoError(
            f"{source}: is a policy of {stored.agent}, and not of placeto, which can place any "
            "graph on any cluster; train one by `placeto train`"
        )
    check(stored)
    return stored


def check(stored: StoredPolicy) -> None:
    """Makes sure that the weights are as the card says.

    Raises:
        PlacetoError: they are not.
    """
    source, shape = stored.source, stored.card["policy"]
    for name in ("hidden", "embedding", "width", "rounds"):
        value = shape.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
            raise PlacetoError(
                f"{source}: the policy's {name} is {value!r}, expected a whole number from 1 to "
                f"{LARGEST}"
            )
    hidden, embedding, width = (shape[name] for name in ("hidden", "embedding", "width"))
    expected: dict[str, tuple[int, ...]] = {"last.weight": (1, hidden)}
    for name, rows, columns in (
        ("enter", width, GROUP_ATTRIBUTES),
        ("down", width, width + 1),
        ("up", width, width + 1),
        ("mix", width, 3 * width),
        ("leave", embedding, width),
        ("first", hidden, 2 * PAIR_FEATURES + GROUP_FEATURES + embedding),
        ("second", hidden, hidden),
    ):
        expected |= {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
    found = {name: array.shape for name, array in stored.arrays.items()}
    if found != expected:
        wrong = sorted(
            name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
        )
        raise PlacetoError(f"{source}: weights of another shape than its card's: {wrong[0]}")
    for name, array in stored.arrays.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise PlacetoError(f"{source}: weights that are not finite 32-bit floats: {name}")
