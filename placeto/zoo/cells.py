"""Convolutional cells, sampled as in ENAS's micro search space.

Pham et al. 2018, arXiv:1802.03268, section 2.4.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from placeto.zoo.draws import drawn

OPERATIONS = ("identity", "separable_3x3", "separable_5x5", "average_pool", "max_pool")
# What a cell reads: the outputs of the two cells before it.
INPUTS = 2


@dataclass(frozen=True)
class Node:
    """A node of a cell: the sum of two operations on earlier outputs.

    Attributes:
        inputs: two numbers of earlier outputs: 0 and 1 are the cell's inputs (the output of the
            cell before the last one, then of the last one), `INPUTS` + i is node i.
        operations: what is done to each, of `OPERATIONS`.
    """

    inputs: tuple[int, int]
    operations: tuple[str, str]


Cell = Sequence[Node]


def sampled_cell(nodes: int, rng: random.Random) -> Cell:
    """A cell of `nodes` nodes, every choice as likely, as an untrained controller samples it."""
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
