"""The language model of a sampled cell: its size, its work, its loss, the names of its parts."""

import random
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the zoo needs placeto[tensorflow]")

from placeto.extraction import extract
from placeto.graph import ComputationGraph
from placeto.zoo.cells import ACTIVATIONS, sampled_recurrent_cell, unread
from placeto.zoo.enas_rnn import enas_rnn
from tests.extraction.macs import forward_macs
from tests.zoo.stepping import Arrays, stepped

# A cell of this seed has every activation and several loose ends.
SEED, NODES, BATCH, LENGTH, HIDDEN, VOCABULARY = 4, 6, 4, 3, 8, 30
SIZES = {
    "seed": SEED,
    "nodes": NODES,
    "batch": BATCH,
    "length": LENGTH,
    "hidden": HIDDEN,
    "vocabulary": VOCABULARY,
}
CELL = sampled_recurrent_cell(NODES, random.Random(SEED))
WORDS = np.random.default_rng(0).integers(0, VOCABULARY, (BATCH, LENGTH + 1))


@pytest.fixture(scope="module")
def graph() -> ComputationGraph:
    options = "&".join(f"{key}={size}" for key, size in SIZES.items())
    return extract(f"zoo:enas_rnn?{options}").graph


@pytest.fixture(scope="module")
def trained() -> tuple[list[float], Arrays, Arrays]:
    return stepped(partial(enas_rnn, **SIZES, clip=0), {"words": WORDS}, steps=40)


def test_the_cell_is_one_of_many_parts() -> None:
    assert {node.activation for node in CELL} == set(ACTIVATIONS)
    assert len(unread(CELL)) > 1


def test_parameters(graph: ComputationGraph) -> None:
    nodes = 2 * HIDDEN * 2 * HIDDEN + (NODES - 1) * HIDDEN * 2 * HIDDEN
    words = VOCABULARY * HIDDEN + (HIDDEN + 1) * VOCABULARY
    assert graph.param_bytes.sum() == 4 * (nodes + words)


def test_work_of_the_forward_products(graph: ComputationGraph) -> None:
    nodes = (NODES + 1) * HIDDEN * 2 * HIDDEN
    assert forward_macs(graph) == BATCH * LENGTH * (nodes + HIDDEN * VOCABULARY)


def test_loss_is_that_of_a_plain_implementation(
    trained: tuple[list[float], Arrays, Arrays],
) -> None:
    _, _, variables = trained
    losses, _, _ = stepped(partial(enas_rnn, **SIZES, clip=0), {"words": WORDS}, steps=41)
    assert losses[40] == pytest.approx(plain_loss(variables), rel=1e-5)


def plain_loss(variables: Arrays) -> float:
    """The cross-entropy, word by word and in double precision."""

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    functions = {
        "tanh": np.tanh,
        "relu": lambda value: np.maximum(value, 0),
        "sigmoid": sigmoid,
        "identity": lambda value: value,
    }
    total = 0.0
    for sentence in WORDS:
        state = np.zeros(HIDDEN)
        for word, wanted in pairwise(sentence):
            outputs: list[np.ndarray] = []
            for number, node in enumerate(CELL):
                carried = outputs[node.source] if number else state
                read = carried if number else np.append(variables["embedding/table"][word], state)
                both = read.astype(float) @ variables[f"node_{number}/kernel"]
                gate = sigmoid(both[:HIDDEN])
                value = functions[node.activation](both[HIDDEN:])
                outputs.append(gate * value + (1 - gate) * carried)
            state = np.mean([outputs[end] for end in unread(CELL)], axis=0)
            logits = state @ variables["softmax/kernel"] + variables["softmax/bias"]
            total += np.log(np.exp(logits).sum()) - logits[wanted]
    return total / (BATCH * LENGTH)
