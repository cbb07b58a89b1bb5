"""Policies of Placeto's, read and checked without torch."""

from pathlib import Path

import numpy as np

from placeto.envs.features.groups import GROUP_ATTRIBUTES
from placeto.envs.features.pairs import GROUP_FEATURES
from placeto.models.placeto.pools import RELATIONS
from placeto.models.placeto.settings import PlacetoNetworkConfig
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
    for name in ("hidden", "embedding", "width", "rounds", "heads", "rank"):
        value = shape.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
            raise PlacetoError(
                f"{source}: the policy's {name} is {value!r}, expected a whole number from 1 to "
                f"{LARGEST}"
            )
    config = stored.shape(PlacetoNetworkConfig)
    hidden, embedding, width = config.hidden, config.embedding, config.width
    layers = [
        ("enter", width, GROUP_ATTRIBUTES),
        ("leave", embedding, width),
        ("first", hidden, 2 * config.pair_columns + GROUP_FEATURES + embedding),
        ("second", hidden, hidden),
    ]
    if config.num_rounds:
        layers += [("down", width, width + 1), ("up", width, width + 1), ("mix", width, 3 * width)]
    expected: dict[str, tuple[int, ...]] = {"last.weight": (1, hidden)}
    if heads := config.num_heads:
        layers += [("query", heads * config.rank, width), ("key", heads * config.rank, width)]
        expected |= {"by_relation": (2, RELATIONS, heads), "apart": (2, heads)}
    for name, rows, columns in layers:
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
