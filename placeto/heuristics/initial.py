"""Placements to start from: one device, random devices, the expert's."""

import re
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from placeto.heuristics.layers import layer_positions
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

InitialPlacement = Literal["first", "random", "expert"] | ArrayLike

# A scope of a recurrent layer: `layer_0`, `lstm` and `lstm_1` as Keras counts, `lstm_1_2`.
LAYER = re.compile(r"(?:^|/)((?:layer|lstm|gru|rnn)(?:_?\d+)*)(?=/|$)")


def initial_placement(
    problem: PlacementProblem, initial: InitialPlacement, rng: np.random.Generator
) -> Ints:
    """(num_groups,) devices that an episode starts from, each allowed.

    They are given, or all the `"first"` device, `"random"` or the `"expert"`'s.

    Raises:
        PlacetoError: an unknown name, or devices of the wrong shape or that are not allowed.
    """
    if isinstance(initial, str):
        if initial == "first":
            return all_on(problem, 0)
        if initial == "random":
            return random_placement(problem, rng)
        if initial == "expert":
            return expert_placement(problem)
        raise PlacetoError(
            f"initial placement is {initial!r}, expected first, random, expert or an array"
        )
    devices = problem.check_devices(initial)
    if (wrong := ~problem.allowed[np.arange(problem.num_groups), devices]).any():
        group = int(np.argmax(wrong))
        allowed = np.flatnonzero(problem.allowed[group]).tolist()
        raise PlacetoError(
            f"initial placement gives group {group} device {devices[group]}, allowed: {allowed}"
        )
    return devices


def all_on(problem: PlacementProblem, device: int | Ints) -> Ints:
    """(num_groups,) every group on one device, or on its own of (num_groups,), if it may be there.

    A group that may not (a pin, an op without a kernel for it) goes where it runs fastest of the
    devices that it may be on.
    """
    seconds = np.where(problem.allowed, problem.group_seconds, np.inf)
    may = problem.allowed[np.arange(problem.num_groups), device]
    return np.where(may, device, seconds.argmin(axis=1))


def single_devices(problem: PlacementProblem) -> Ints:
    """(num_devices, num_groups) every group on one device, for each device; see `all_on`."""
    return np.stack([all_on(problem, device) for device in range(problem.num_devices)])


def random_placement(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(num_groups,) each group's device drawn uniformly from those allowed."""
    return np.where(problem.allowed, rng.random(problem.allowed.shape), -1.0).argmax(axis=1)


def expert_placement(problem: PlacementProblem) -> Ints:
    """(num_groups,) what a person would write down, on the devices of the fastest kind.

    Vision models are cut along the topological order into contiguous blocks of equal time, one a
    device, and so are sequence models (`"kind": "sequence"` in the graph's meta) whose op names
    tell of no layers. Other sequence models get one recurrent layer a device, in turn, the
    encoder's and the decoder's of one number together, and the embedding with the first;
    attention and softmax go on the last device. In a step of several microbatches the blocks are
    along the forward pass, each layer with its gradients. These are the expert placements
    of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972, section 4.1), who took the recurrent one
    from Sutskever et al. 2014.
    """
    anywhere = np.isfinite(problem.op_seconds).all(axis=1)
    totals = problem.op_seconds[anywhere].sum(axis=0)
    kinds = np.array([device.kind for device in problem.cluster.devices])
    devices = np.flatnonzero(kinds == kinds[totals.argmin()])
    sequence = problem.graph.meta.get("kind") == "sequence"
    layers = [_layer(name) for name in problem.graph.op_names] if sequence else []
    if any(layers):
        stages = _layers(problem, layers, len(devices))
    else:
        stages = _blocks(problem, int(devices[0]), len(devices))
    return all_on(problem, devices[stages])


def _blocks(problem: PlacementProblem, device: int, count: int) -> Ints:
    """(num_groups,) contiguous blocks of equal time on `device`, numbered along the order."""
    pipelined = problem.graph.num_microbatches > 1
    order = np.argsort(layer_positions(problem)[0]) if pipelined else problem.group_order
    seconds = problem.group_seconds[:, device]
    seconds = np.where(np.isfinite(seconds), seconds, 0)[order]
    middle = np.cumsum(seconds) - seconds / 2
    stages = np.empty(problem.num_groups, dtype=np.int64)
    total = max(float(seconds.sum()), np.finfo(float).tiny)
    stages[order] = np.minimum(middle / total * count, count - 1).astype(np.int64)
    return stages


def _layers(problem: PlacementProblem, layers: list[str], count: int) -> Ints:
    """(num_groups,) recurrent layer modulo `count`; the last for what belongs to no layer.

    A group belongs to the layer in which its ops spend most time.
    """
    names = problem.graph.op_names
    found = sorted({layer for layer in layers if layer}, key=_numbers)
    stage_of = {layer: index % count for index, layer in enumerate(found)}
    stages = (
        stage_of[layer] if layer else 0 if "embedding" in name else count - 1
        for name, layer in zip(names, layers, strict=True)
    )
    seconds = np.where(np.isfinite(problem.op_seconds), problem.op_seconds, 0).max(axis=1)
    votes = np.zeros((problem.num_groups, count))
    np.add.at(votes, (problem.op_group, np.array([*stages])), seconds + 1e-12)
    return votes.argmax(axis=1)


def _layer(name: str) -> str:
    """The recurrent layer's scope that an op is in, a numbered one first; "" for none."""
    scopes = LAYER.findall(name)
    return max(scopes, key=lambda scope: scope[-1].isdigit(), default="")


def _numbers(layer: str) -> tuple[list[int], str]:
    return [int(digits) for digits in re.findall(r"\d+", layer)], layer
