"""Cells sampled as in ENAS: convolutional ones of its micro search space, and recurrent ones.

Pham et al. 2018, arXiv:1802.03268, sections 2.4 and 2.1. Every choice is as likely, as an
untrained controller samples.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from placeto.zoo.draws import drawn

OPERATIONS = ("identity", "separable_3x3", "separable_5x5", "average_pool", "max_pool")
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
# What a convolutional cell reads: the outputs of the two cells before it.
INPUTS = 2


@dataclass(frozen=True)
class Node:
    """A node of a convolutional cell: the sum of two operations on earlier outputs.

    Attributes:
        inputs: two numbers of earlier outputs: 0 and 1 are the cell's inputs (the output of the
            cell before the last one, then of the last one), `INPUTS` + i is node i.
        operations: what is done to each, of `OPERATIONS`.
    """

    inputs: tuple[int, int]
    operations: tuple[str, str]


Cell = Sequence[Node]


def sampled_cell(nodes: int, rng: random.Random) -> Cell:
    """A convolutional cell of `nodes` nodes."""
    cell = []
    for node in range(nodes):
        earlier = range(node + INPUTS)
        first, first_operation = drawn(earlier, rng), drawn(OPERATIONS, rng)
        second, second_operation = drawn(earlier, rng), drawn(OPERATIONS, rng)
        cell.append(Node((first, second), (first_operation, second_operation)))
    return tuple(cell)


def loose_ends(cell: Cell) -> list[int]:
    """The outputs that no node reads, inputs included: concatenated, they are the cell's output."""
    read = {source for node in cell for source in node.inputs}
    return [output for output in range(len(cell) + INPUTS) if output not in read]


@dataclass(frozen=True)
class RecurrentNode:
    """A node of a recurrent cell.

    Attributes:
        source: the node that it reads, of a lower number; -1 for the first node, which reads the
            word and the cell's last output.
        activation: of `ACTIVATIONS`.
    """

    source: int
    activation: str


RecurrentCell = Sequence[RecurrentNode]


def sampled_recurrent_cell(nodes: int, rng: random.Random) -> RecurrentCell:
    """A recurrent cell of `nodes` nodes."""
    cell = [RecurrentNode(-1, drawn(ACTIVATIONS, rng))]
    for node in range(1, nodes):
        source = drawn(range(node), rng)
        cell.append(RecurrentNode(source, drawn(ACTIVATIONS, rng)))
    return tuple(cell)


def unread(cell: RecurrentCell) -> list[int]:
    """The nodes that no other reads: the cell's output is their mean."""
    read = {node.source for node in cell}
    return [number for number in range(len(cell)) if number not in read]
