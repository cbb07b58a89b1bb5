"""Policies that were never trained, for problems of any kind."""

import numpy as np
import torch

from placeto import PlacementProblem
from placeto.models.placeto.network import PlacetoPolicy
from placeto.models.placeto.play import CompiledPolicy
from placeto.models.placeto.settings import PlacetoNetworkConfig

SHAPE = PlacetoNetworkConfig(hidden=8, embedding=3, width=4, rounds=2, heads=3, rank=2)


def drawn_policy(seed: int = 0, scale: float = 1.0) -> PlacetoPolicy:
    """A policy whose weights are all drawn, those included that begin at 0."""
    torch.manual_seed(seed)
    policy = PlacetoPolicy(SHAPE)
    torch.nn.init.normal_(policy.last.weight, std=scale)
    return policy


def guide_of(problem: PlacementProblem, policy: PlacetoPolicy) -> CompiledPolicy:
    return policy.guide(problem)


def gumbel(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).gumbel(size=shape)
