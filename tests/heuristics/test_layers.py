"""How deep in a pipelined model what is, and the expert's blocks."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from placeto import PlacementProblem, place
from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.heuristics.layers import layer_positions
from tests.builders import make_cluster, make_graph

LAYERS = 4


def pipelined():
    """Four layers, two microbatches; the way back of a layer takes three ops, the way there one.

    Each layer has a weight, which is read, and updated by the sum of its gradients; all updates
    wait for the norm of all gradients.
    """
    # Of each op: seconds, microbatch, phase. Tensors: producer -> consumers.
    ops, reads = {}, []
    for layer in range(LAYERS):
        ops[f"weight{layer}"] = 0.1, -1, FORWARD
        ops[f"update{layer}"] = 0.1, -1, UPDATE
        ops[f"scale{layer}"] = 0.1, -1, UPDATE
        reads += [(f"scale{layer}", f"update{layer}"), (f"weight{layer}", f"update{layer}")]
        reads += [("norm", f"scale{layer}"), (f"1/sum{layer}", f"scale{layer}")]
        reads += [(f"1/sum{layer}", "norm"), (f"0/weight's{layer}", f"1/sum{layer}")]
    ops["norm"] = 0.0, -1, UPDATE
    for part in range(2):
        for layer in range(LAYERS):
            ops[f"{part}/forward{layer}"] = 1.0, part, FORWARD
            for name in ("back", "weight's", "sum")[: 2 + part]:
                ops[f"{part}/{name}{layer}"] = 1.0, part, BACKWARD
            reads += [(f"weight{layer}", f"{part}/{name}{layer}") for name in ("forward", "back")]
            reads += [
                (f"{part}/forward{layer}", f"{part}/{n}{layer}") for n in ("back", "weight's")
            ]
        reads += [(f"{part}/weight's{layer}", f"1/sum{layer}") for layer in range(LAYERS)]
        for one, other in pairwise(range(LAYERS)):
            reads += [(f"{part}/forward{one}", f"{part}/forward{other}")]
            reads += [(f"{part}/back{other}", f"{part}/{n}{one}") for n in ("back", "weight's")]
        ops[f"{part}/input"] = 0.0, part, FORWARD
        ops[f"{part}/label"] = 0.0, part, FORWARD
        last = f"{part}/forward{LAYERS - 1}"
        reads += [(f"{part}/input", f"{part}/forward0"), (f"{part}/label", last)]
    graph = make_graph(
        {name: seconds for name, (seconds, _, _) in ops.items()},
        [(one, 1, [other]) for one, other in dict.fromkeys(reads)],
    )
    _, microbatch, phase = zip(*ops.values(), strict=True)
    names = list(ops)
    copy_of = [
        names.index(f"0/{name[2:]}") if part == 1 and "sum" not in name else -1
        for name, part in zip(names, microbatch, strict=True)
    ]
    return replace(graph, microbatch=microbatch, phase=phase, copy_of=copy_of)


def layers_of(graph, rows):
    """The layers, as told by ops' names, of each of some (num_ops,) rows of numbers."""
    return {
        number: {name[-1] for name, n in zip(graph.op_names, rows, strict=True)
                 if n == number and name[-1].isdigit()}
        for number in set(rows)
    }  # fmt: skip


def test_what_belongs_to_a_layer_is_as_deep():
    graph = pipelined()
    problem = PlacementProblem(graph, make_cluster(2), "none")
    by_phases, by_ends = layer_positions(problem)
    place_of = dict(zip(graph.op_names, by_phases[problem.op_group].tolist(), strict=True))
    named = sorted((position, name) for name, position in place_of.items() if name != "norm")
    # In the row there is one layer after the other: copies, gradients, weights and updates.
    layer = [int(name[-1]) for _, name in named if name[-1].isdigit()]
    assert layer == sorted(layer)
    assert place_of["0/input"] < place_of["0/forward1"]
    assert place_of["0/label"] > place_of["0/forward2"]
    assert sorted(by_ends.tolist()) == sorted(by_phases.tolist()) == [*range(problem.num_groups)]


def test_the_expert_puts_layers_with_their_gradients_on_devices():
    graph = pipelined()
    for grouping in ("none", "auto", "papers"):
        placement = place(PlacementProblem(graph, make_cluster(2), grouping), "expert")
        op_devices = placement.devices[placement.problem.op_group].tolist()
        assert layers_of(graph, op_devices) == {0: {"0", "1"}, 1: {"2", "3"}}
        copies = np.flatnonzero(graph.copy_of >= 0)
        assert all(op_devices[op] == op_devices[graph.copy_of[op]] for op in copies.tolist())
