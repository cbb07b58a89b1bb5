"""The memory of a pipeline's stages by hand; against PyTorch in `integrations.test_rank_memory`."""

from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem
from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.simulation.stage_memory import stage_memory
from tests.builders import make_cluster, make_graph

PARTS = "xyz"


def two_layers():
    """A layer on each device, of three microbatches.

    The first layer reads an input of 1 byte, keeps 3 bytes for its gradient of 4 bytes, which adds
    up, yields 10 bytes and has back 7; last, an op needs 9 bytes. The second layer keeps 5 bytes.
    """
    names, tensors, groups, phases = [], [], [], []
    for part in PARTS:
        layers = {"in": 0, "f0": 0, "f1": 1, "b1": 1, "b0": 0, "c0": 0}
        names += [part + name for name in layers]
        groups += layers.values()
        phases += [BACKWARD if name[0] in "bc" else FORWARD for name in layers]
        sums = (
            ["update"] + [f"{other}sum" for other in PARTS[1:]] if part == "x" else [f"{part}sum"]
        )
        tensors += [
            (f"{part}in", 1, [f"{part}f0"]),
            (f"{part}f0", 10, [f"{part}f1", f"{part}b1"]),
            (f"{part}f0", 3, [f"{part}b0"]),
            (f"{part}f1", 5, [f"{part}b1"]),
            (f"{part}b1", 7, [f"{part}b0"]),
            (f"{part}b0", 4, sums),
            (f"{part}b0", 0, [f"{part}c0"]),
            (f"{part}c0", 1, []),
        ]
    names += ["ysum", "zsum", "update"]
    tensors += [("ysum", 0, ["zsum"]), ("zsum", 0, ["update"])]
    temporary = {f"{part}{name}": size for part in PARTS for name, size in (("b0", 1), ("c0", 8))}
    graph = make_graph(
        dict.fromkeys(names, 1.0),
        tensors,
        param_bytes={"xf0": 100, "xf1": 200},
        temp_bytes=temporary,
    )
    each = len(names) // 3 - 1
    graph = replace(
        graph,
        op_types=["input" if name.endswith("in") else "Op" for name in names],
        microbatch=[*np.repeat([0, 1, 2], each), 1, 2, -1],
        copy_of=[-1] * each + [*range(each)] * 2 + [-1] * 3,
        phase=[*phases, BACKWARD, BACKWARD, UPDATE],
    )
    return PlacementProblem(graph, make_cluster(2), np.array([*groups, 0, 0, 0]))


# Weights, three inputs, buffers of what is received three times, and what is alive at most: of the
# first layer in the last op of a way back, with the sum of gradients; of the second one in its way
# back, with what it sends.
@pytest.mark.parametrize(
    ("schedule", "first", "second"),
    [
        ("1f1b", 100 + 3 + 3 * 7 + 2 * 10 + 3 + 4 + 9, 200 + 3 * 10 + 5 + 2 * 7),
        ("gpipe", 100 + 3 + 3 * 7 + 3 * 10 + 2 * 3 + 4 + 9, 200 + 3 * 10 + 5 + 3 * 7),
    ],
)
def test_two_layers(schedule, first, second):
    peaks = stage_memory(two_layers(), np.array([0, 1]), schedule)
    assert peaks.tolist() == [first, second]


def test_one_stage_receives_nothing():
    # A microbatch at a time, in the way back of its second layer, beside a gradient.
    (peak, other) = stage_memory(two_layers(), np.array([0, 0]), "1f1b").tolist()
    assert (peak, other) == (300 + 3 + 4 + 10 + 3 + 5 + 7, 0)
