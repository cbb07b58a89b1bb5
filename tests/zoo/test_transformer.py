"""The Transformer: its size, its work, its loss, and where the expert puts its parts."""

import re
from functools import partial
from math import erf, sqrt

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the zoo needs placeto[tensorflow]")

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.extraction import extract
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import expert_placement
from placeto.zoo.transformer import transformer
from tests.extraction.macs import forward_macs
from tests.zoo.stepping import Arrays, stepped

LAYERS, BATCH, LENGTH, HIDDEN, HEADS, VOCABULARY, MASKED = 2, 3, 5, 12, 3, 40, 2
SIZES = {
    "layers": LAYERS,
    "batch": BATCH,
    "length": LENGTH,
    "hidden": HIDDEN,
    "heads": HEADS,
    "vocabulary": VOCABULARY,
    "masked": MASKED,
}
RNG = np.random.default_rng(0)
INPUTS = {
    "words": RNG.integers(0, VOCABULARY, (BATCH, LENGTH)),
    "segments": RNG.integers(0, 2, (BATCH, LENGTH)),
    "positions": RNG.integers(0, LENGTH, (BATCH, MASKED)),
    "wanted": RNG.integers(0, VOCABULARY, (BATCH, MASKED)),
}


@pytest.fixture(scope="module")
def graph() -> ComputationGraph:
    return extract(
        "zoo:transformer?" + "&".join(f"{key}={size}" for key, size in SIZES.items())
    ).graph


def parameters(layers: int, hidden: int, vocabulary: int) -> int:
    embedding = (vocabulary + 512 + 2 + 2) * hidden
    layer = 4 * (hidden + 1) * hidden + 8 * hidden**2 + 5 * hidden + 4 * hidden
    return embedding + layers * layer + (hidden + 3) * hidden + vocabulary


def macs(layers: int, batch: int, length: int, hidden: int, vocabulary: int, masked: int) -> int:
    layer = length * 12 * hidden**2 + 2 * length**2 * hidden
    return batch * (layers * layer + masked * hidden * (hidden + vocabulary))


def test_parameters(graph: ComputationGraph) -> None:
    # Adam keeps two slots a variable, and two powers.
    assert graph.param_bytes.sum() == 4 * (3 * parameters(LAYERS, HIDDEN, VOCABULARY) + 2)


def test_bundled_parameters_are_the_published_ones() -> None:
    # Devlin et al. 2018, arXiv:1810.04805: 110 million.
    assert parameters(12, 768, 30522) == pytest.approx(110e6, rel=0.005)
    found = load_graph("transformer").param_bytes.sum()
    assert found == 4 * (3 * parameters(12, 768, 30522) + 2)


def test_work_of_the_forward_products(graph: ComputationGraph) -> None:
    assert forward_macs(graph) == macs(LAYERS, BATCH, LENGTH, HIDDEN, VOCABULARY, MASKED)
    assert forward_macs(load_graph("transformer")) == macs(12, 32, 128, 768, 30522, 20)


def test_loss_is_that_of_a_plain_implementation() -> None:
    # Weights from a random step on, since at first all biases are zero.
    losses, _, variables = stepped(partial(transformer, **SIZES, learning_rate=0.3), INPUTS)
    again, _, _ = stepped(partial(transformer, **SIZES, learning_rate=0.3), INPUTS, steps=2)
    assert again == [losses[0], pytest.approx(plain_loss(variables), rel=1e-4)]


def plain_loss(variables: Arrays) -> float:
    """The cross-entropy, one sentence, one head and one word at a time, in double precision."""
    weights = {name: value.astype(float) for name, value in variables.items()}

    def dense(name: str, row: np.ndarray) -> np.ndarray:
        return row @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def norm(name: str, row: np.ndarray) -> np.ndarray:
        scaled = (row - row.mean()) / row.std() * weights[f"{name}/norm/scale"]
        return scaled + weights[f"{name}/norm/offset"]

    def gelu(row: np.ndarray) -> np.ndarray:
        return np.array([value * (1 + erf(value / sqrt(2))) / 2 for value in row])

    def layer(name: str, rows: list[np.ndarray]) -> list[np.ndarray]:
        attention, feed = f"{name}/attention", f"{name}/feed_forward"
        asked, keys, values = (
            [dense(f"{attention}/{part}", row) for row in rows]
            for part in ("query", "key", "value")
        )
        each = HIDDEN // HEADS
        out = []
        for row, query in zip(rows, asked, strict=True):
            answer = np.zeros(HIDDEN)
            for head in range(HEADS):
                part = slice(head * each, (head + 1) * each)
                scores = np.exp([query[part] @ key[part] / sqrt(each) for key in keys])
                for share, value in zip(scores / scores.sum(), values, strict=True):
                    answer[part] += share * value[part]
            middle = norm(attention, row + dense(f"{attention}/output", answer))
            wide = gelu(dense(f"{feed}/wide", middle))
            out.append(norm(feed, middle + dense(f"{feed}/narrow", wide)))
        return out

    total = 0.0
    for words, segments, positions, wanted in zip(*INPUTS.values(), strict=True):
        rows = [
            norm(
                "embedding",
                weights["embedding/words"][word]
                + weights["embedding/segments"][segment]
                + weights["embedding/positions"][place],
            )
            for place, (word, segment) in enumerate(zip(words, segments, strict=True))
        ]
        for number in range(LAYERS):
            rows = layer(f"encoder/layer_{number}", rows)
        for position, word in zip(positions, wanted, strict=True):
            guess = norm("softmax", gelu(dense("softmax/dense", rows[position])))
            logits = weights["embedding/words"] @ guess + weights["softmax/bias"]
            total += np.log(np.exp(logits).sum()) - logits[word]
    return total / (BATCH * MASKED)


def test_gradients_reach_every_variable_but_the_keys_biases() -> None:
    # A key's bias adds the same to every score of a query, which the softmax takes out.
    build = partial(transformer, **SIZES, optimizer="sgd", learning_rate=1.0)
    _, first, last = stepped(build, INPUTS)
    for name in first:
        moved = np.abs(last[name] - first[name]).max()
        assert (moved < 1e-9) == name.endswith("attention/key/bias"), (name, moved)


def test_gradients_are_the_slopes_of_the_plain_loss() -> None:
    build = partial(transformer, **SIZES, optimizer="sgd", learning_rate=1.0, clip=0.0)
    _, first, last = stepped(build, INPUTS)
    for name, value in first.items():
        # Along the gradient itself, so that every element of it counts.
        gradient = (value - last[name]).astype(float)
        size = max(np.linalg.norm(gradient), 1e-12)
        nudge = 1e-4 * gradient / size
        slope = plain_loss({**first, name: value + nudge}) - plain_loss(
            {**first, name: value - nudge}
        )
        assert slope / 2e-4 == pytest.approx(size, rel=1e-2, abs=1e-6), name


def test_every_costly_op_says_which_part_it_belongs_to(graph: ComputationGraph) -> None:
    part = re.compile(
        r"^(gradient_tape/|ConstantFolding/|update/)*"
        r"(embedding|encoder/layer_\d+/(attention|feed_forward)|softmax)/|^clip/|^update/adam/"
    )
    for name, seconds in zip(graph.op_names, graph.op_seconds["k80"], strict=True):
        assert seconds == 0 or part.match(name), name
    assert graph.meta["kind"] == "sequence"


def test_the_expert_gives_layers_devices_in_turn() -> None:
    problem = PlacementProblem(load_graph("transformer"), load_cluster("k80x4"), "none")
    devices = expert_placement(problem)[problem.op_group].tolist()
    by_op = dict(zip(problem.graph.op_names, devices, strict=True))
    for scope, device in (
        ("embedding/", 0),
        ("encoder/layer_0/", 0),
        ("encoder/layer_6/", 2),
        ("gradient_tape/encoder/layer_6/", 2),
        ("encoder/layer_11/", 3),
        ("softmax/", 3),
    ):
        assert {by_op[name] for name in by_op if name.startswith(scope)} == {device}, scope
