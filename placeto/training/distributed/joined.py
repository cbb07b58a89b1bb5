"""Episodes that were played apart, as if they had been played together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placeto.training.hierarchical import Clustering
from placeto.training.one_shot import Shots
from placeto.training.rollout import Rollout
from placeto.training.sweeps import Sweeps

_OF_STEPS = ("rewards", "actions")
_OF_EPISODES = ("devices", "step_time", "best_cost")

# Along which axis the episodes of an array are. What is not named is the same for all.
_AXES: dict[type, dict[str, int]] = {
    Rollout: {
        **dict.fromkeys(("features", "current", "allowed", *_OF_STEPS), 1),
        **dict.fromkeys(_OF_EPISODES, 0),
    },
    Sweeps: {
        **dict.fromkeys(("pairs", "groups", "open", *_OF_STEPS), 1),
        **dict.fromkeys(("best", "simulated", *_OF_EPISODES), 0),
    },
    Shots: {**dict.fromkeys(("choices", "rewards"), 1), **dict.fromkeys(_OF_EPISODES, 0)},
    Clustering: {"cluster": 0, "devices": 1},
}


def joined(parts: Sequence[Any]) -> Any:
    """All episodes of some parts, in their order.

    Args:
        parts: at least one; what an agent's `roll_out` returned, of one problem.

    Returns:
        The same kind.
    """
    first = parts[0]
    axes = _AXES[type(first)]
    names = getattr(first, "_fields", None) or first.__dataclass_fields__
    columns = {}
    for name in names:
        values = [getattr(part, name) for part in parts]
        columns[name] = _column(values, axes[name]) if name in axes else values[0]
    return type(first)(**columns)


def _column(values: Sequence[Any], axis: int) -> Any:
    if type(values[0]) in _AXES:
        return joined(values)
    if isinstance(values[0], Tensor):
        return torch.cat(list(values), dim=axis)
    return np.concatenate(values, axis=axis)
