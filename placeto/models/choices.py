"""Choices of which some are forbidden."""

import torch
from torch import Tensor


def masked(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits with those of devices that are not allowed at minus infinity."""
    return logits.masked_fill(~allowed, -torch.inf)


def entropy(log: Tensor) -> Tensor:
    """Entropy of each row of log-probabilities; impossible choices count nothing."""
    return -(log.exp() * log.masked_fill(log == -torch.inf, 0)).sum(dim=-1)
