"""Episodes that were played apart, as if they had been played together."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

_OF_STEPS = ("rewards", "actions")
_OF_EPISODES = ("devices", "step_time", "best_cost")


def joined(parts: Sequence[Any]) -> Any:
    """All episodes of some parts, in their order.

    Args:
        parts: at least one; what an agent's `roll_out` returned, of one problem.

    Returns:
        The same kind.
    """
    first = parts[0]
    axes = first.AXES
    names = [field.name for field in fields(first)]
    columns = {}
    for name in names:
        values = [getattr(part, name) for part in parts]
        columns[name] = _column(values, axes[name]) if name in axes else values[0]
    return type(first)(**columns)


def _column(values: Sequence[Any], axis: int) -> Any:
    if hasattr(values[0], "AXES"):
        return joined(values)
    if isinstance(values[0], Tensor):
        return torch.cat(list(values), dim=axis)
    return np.concatenate(values, axis=axis)
