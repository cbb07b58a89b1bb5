"""The language model: its size, its work, its loss, and where the expert puts its parts."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the zoo needs placeto[tensorflow]")

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.extraction import extract
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import expert_placement
from placeto.zoo.rnnlm import rnnlm
from tests.extraction.macs import forward_macs
from tests.zoo.stepping import Arrays, stepped

LAYERS, BATCH, LENGTH, HIDDEN, EMBEDDING, VOCABULARY = 3, 4, 5, 8, 6, 30
SIZES = {
    "layers": LAYERS,
    "batch": BATCH,
    "length": LENGTH,
    "hidden": HIDDEN,
    "embedding": EMBEDDING,
    "vocabulary": VOCABULARY,
}
WORDS = np.random.default_rng(0).integers(0, VOCABULARY, (BATCH, LENGTH + 1))


@pytest.fixture(scope="module")
def graph() -> ComputationGraph:
    return extract("zoo:rnnlm?" + "&".join(f"{key}={size}" for key, size in SIZES.items())).graph


@pytest.fixture(scope="module")
def trained() -> tuple[list[float], Arrays, Arrays]:
    return stepped(partial(rnnlm, **SIZES), {"words": WORDS}, steps=40)


def test_parameters(graph: ComputationGraph) -> None:
    first = (EMBEDDING + HIDDEN + 1) * 4 * HIDDEN
    later = (2 * HIDDEN + 1) * 4 * HIDDEN
    words = VOCABULARY * EMBEDDING + (HIDDEN + 1) * VOCABULARY
    assert graph.param_bytes.sum() == 4 * (first + (LAYERS - 1) * later + words)


def test_parameters_of_the_large_model_are_the_published_ones() -> None:
    # Zaremba et al. 2014, arXiv:1409.2329: 1,500 units in two layers, 66 million parameters.
    graph = extract("zoo:rnnlm?hidden=1500&embedding=1500&batch=1&length=1").graph
    assert graph.param_bytes.sum() / 4 == pytest.approx(66e6, rel=0.005)


def test_work_of_the_forward_products(graph: ComputationGraph) -> None:
    cells = (EMBEDDING + HIDDEN) * 4 * HIDDEN + (LAYERS - 1) * 2 * HIDDEN * 4 * HIDDEN
    assert forward_macs(graph) == BATCH * LENGTH * (cells + HIDDEN * VOCABULARY)


def test_loss_is_that_of_a_plain_implementation(
    trained: tuple[list[float], Arrays, Arrays],
) -> None:
    # After training, since the first weights are too small to matter.
    _, _, variables = trained
    losses, _, _ = stepped(partial(rnnlm, **SIZES), {"words": WORDS}, steps=41)
    assert losses[40] == pytest.approx(plain_loss(variables), rel=1e-5)


def plain_loss(variables: Arrays) -> float:
    """The cross-entropy, word by word and in double precision."""

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    total = 0.0
    for sentence in WORDS:
        outputs, cells = np.zeros((2, LAYERS, HIDDEN))
        for word, wanted in pairwise(sentence):
            below = variables["embedding/table"][word].astype(float)
            for layer in range(LAYERS):
                seen = np.concatenate([below, outputs[layer]])
                gates = seen @ variables[f"layer_{layer}/kernel"] + variables[f"layer_{layer}/bias"]
                admit, candidate, forget, emit = gates.reshape(4, HIDDEN)
                cells[layer] *= sigmoid(forget)
                cells[layer] += sigmoid(admit) * np.tanh(candidate)
                below = outputs[layer] = sigmoid(emit) * np.tanh(cells[layer])
            logits = below @ variables["softmax/kernel"] + variables["softmax/bias"]
            total += np.log(np.exp(logits).sum()) - logits[wanted]
    return total / (BATCH * LENGTH)


def test_untrained_it_guesses_and_then_learns(trained: tuple[list[float], Arrays, Arrays]) -> None:
    losses, first, last = trained
    assert losses[0] == pytest.approx(np.log(VOCABULARY), rel=0.01)
    assert losses[-1] < 0.9 * losses[0]
    assert all((first[name] != last[name]).any() for name in first)


def test_the_expert_gives_each_layer_a_device() -> None:
    problem = PlacementProblem(load_graph("rnnlm"), load_cluster("k80x4"), "none")
    devices = expert_placement(problem)[problem.op_group].tolist()
    by_op = dict(zip(problem.graph.op_names, devices, strict=True))
    for scope, device in (
        ("embedding/", 0),
        ("layer_0/", 0),
        ("gradient_tape/layer_0/", 0),
        ("layer_1/", 1),
        ("gradient_tape/layer_1/", 1),
        ("softmax/", 3),
        ("gradient_tape/softmax/", 3),
    ):
        assert {by_op[name] for name in by_op if name.startswith(scope)} == {device}, scope
