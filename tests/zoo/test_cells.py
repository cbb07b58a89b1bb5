"""Cells obey ENAS's rules."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto.zoo.cells import (
    ACTIVATIONS,
    INPUTS,
    OPERATIONS,
    Node,
    loose_ends,
    sampled_cell,
    sampled_recurrent_cell,
    unread,
)

nodes_and_seeds = st.tuples(st.integers(1, 12), st.integers(0, 10**6))


@given(nodes_and_seeds)
def test_nodes_of_a_convolutional_cell_read_earlier_outputs(case: tuple[int, int]) -> None:
    nodes, seed = case
    cell = sampled_cell(nodes, random.Random(seed))
    assert len(cell) == nodes
    for number, node in enumerate(cell):
        assert len(node.inputs) == len(node.operations) == 2
        assert all(0 <= source < INPUTS + number for source in node.inputs)
        assert set(node.operations) <= set(OPERATIONS)
    read = {source for node in cell for source in node.inputs}
    assert read.isdisjoint(loose_ends(cell))
    assert read.union(loose_ends(cell)) == set(range(INPUTS + nodes))
    assert loose_ends(cell)[-1] == INPUTS + nodes - 1


def test_loose_ends_of_the_papers_example() -> None:
    # Pham et al. 2018, arXiv:1802.03268, section 2.4: of nodes 1 to 4, the first two being the
    # inputs, 3 reads 2 twice and 4 reads 3 and 1.
    cell = (
        Node((1, 1), ("separable_5x5", "identity")),
        Node((2, 0), ("average_pool", "separable_3x3")),
    )
    assert loose_ends(cell) == [3]
    assert loose_ends(cell[:1]) == [0, 2]


@given(nodes_and_seeds)
def test_nodes_of_a_recurrent_cell_read_one_earlier(case: tuple[int, int]) -> None:
    nodes, seed = case
    cell = sampled_recurrent_cell(nodes, random.Random(seed))
    assert len(cell) == nodes
    assert cell[0].source == -1
    assert all(0 <= node.source < number for number, node in enumerate(cell) if number)
    assert {node.activation for node in cell} <= set(ACTIVATIONS)
    read = {node.source for node in cell}
    assert set(unread(cell)) == set(range(nodes)) - read


def test_every_choice_is_as_likely() -> None:
    rng = random.Random(0)
    nodes = [node for _ in range(1000) for node in sampled_cell(3, rng)]
    operations = Counter(operation for node in nodes for operation in node.operations)
    assert len(operations) == len(OPERATIONS)
    assert all(count == pytest.approx(6000 / 5, rel=0.1) for count in operations.values())
    last = Counter(source for node in nodes[2::3] for source in node.inputs)
    assert sorted(last) == [0, 1, 2, 3]
    assert all(count == pytest.approx(2000 / 4, rel=0.15) for count in last.values())
    activations = Counter(
        node.activation for _ in range(1000) for node in sampled_recurrent_cell(2, rng)
    )
    assert all(activations[each] == pytest.approx(500, rel=0.15) for each in ACTIVATIONS)
