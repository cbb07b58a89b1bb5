"""What a person would write down, per kind of model."""

import re

import numpy as np

from placeto.graph import Ints
from placeto.placers.base import Incumbent
from placeto.problem import PlacementProblem

LAYER = re.compile(r"(?:^|/)(?:layer|lstm|gru|rnn)_?(\d+)(?=/|$)")


def place_expert(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The expert's placement, on the devices of the fastest kind.

    Vision models are cut along the topological order into contiguous blocks of equal time, one a
    device. Sequence models get one recurrent layer a device, in turn, the encoder's and the
    decoder's of one number together, and the embedding with the first; attention and softmax go
    on the last device. These are the expert placements of ColocRL (Mirhoseini et al. 2017,
    arXiv:1706.04972, section 4.1), who took the recurrent one from Sutskever et al. 2014.
    """
    problem = incumbent.problem
    totals = np.where(problem.allowed, problem.group_seconds, np.inf).sum(axis=0)
    kinds = [device.kind for device in problem.cluster.devices]
    fastest = kinds[int(totals.argmin())]
    devices = np.array([number for number, kind in enumerate(kinds) if kind == fastest])
    if problem.graph.meta.get("kind") == "sequence":
        stages = _layers(problem, len(devices))
    else:
        stages = _blocks(problem, int(devices[0]), len(devices))
    wanted = devices[stages]
    seconds = np.where(problem.allowed, problem.group_seconds, np.inf)
    groups = np.arange(problem.num_groups)
    incumbent.offer(np.where(problem.allowed[groups, wanted], wanted, seconds.argmin(axis=1)))


def _blocks(problem: PlacementProblem, device: int, count: int) -> Ints:
    """(num_groups,) contiguous blocks of equal time on `device`, numbered along the order."""
    order = problem.group_order
    seconds = problem.group_seconds[:, device]
    seconds = np.where(np.isfinite(seconds), seconds, 0)[order]
    middle = np.cumsum(seconds) - seconds / 2
    stages = np.empty(problem.num_groups, dtype=np.int64)
    total = max(float(seconds.sum()), np.finfo(float).tiny)
    stages[order] = np.minimum(middle / total * count, count - 1).astype(np.int64)
    return stages


def _layers(problem: PlacementProblem, count: int) -> Ints:
    """(num_groups,) recurrent layer modulo `count`; the last for what belongs to no layer.

    A group belongs to the layer in which its ops spend most time.
    """
    names = problem.graph.op_names
    # Columns: one a stage. Ops of embeddings feed the first layer; the rest is attention, softmax.
    stage = np.array([_stage(name, count) for name in names])
    seconds = np.where(np.isfinite(problem.op_seconds), problem.op_seconds, 0).max(axis=1)
    votes = np.zeros((problem.num_groups, count))
    np.add.at(votes, (problem.op_group, stage), seconds + 1e-12)
    return votes.argmax(axis=1)


def _stage(name: str, count: int) -> int:
    if match := LAYER.search(name):
        return int(match.group(1)) % count
    return 0 if "embedding" in name else count - 1
