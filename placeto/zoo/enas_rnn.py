"""A language model of a recurrent cell that ENAS could sample, unrolled."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.zoo.draws import drawn
from placeto.zoo.optimizers import Optimizer
from placeto.zoo.recurrent import embedded, mean_loss, word_loss
from placeto.zoo.training import check_sizes, training_function, uniform_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")


@dataclass(frozen=True)
class Node:
    """A node of a recurrent cell.

    Attributes:
        source: the node that it reads, of a lower number; -1 for the first node, which reads the
            word and the cell's last output.
        activation: of `ACTIVATIONS`.
    """

    source: int
    activation: str


def sampled_recurrent_cell(nodes: int, rng: random.Random) -> Sequence[Node]:
    """A cell of `nodes` nodes, every choice as likely, as an untrained controller samples it."""
    cell = [Node(-1, drawn(ACTIVATIONS, rng))]
    for node in range(1, nodes):
        source = drawn(range(node), rng)
        cell.append(Node(source, drawn(ACTIVATIONS, rng)))
    return tuple(cell)


def unread(cell: Sequence[Node]) -> list[int]:
    """The nodes that no other reads: the cell's output is their mean."""
    read = {node.source for node in cell}
    return [number for number in range(len(cell)) if number not in read]


def enas_rnn(
    seed: int = 0,
    nodes: int = 8,
    batch: int = 64,
    length: int = 25,
    hidden: int = 1000,
    vocabulary: int = 10000,
    optimizer: str = "sgd",
    learning_rate: float = 1.0,
    clip: float = 0.25,
) -> Any:
    """The training step of a language model of one recurrent cell.

    The cell is drawn as by `sampled_recurrent_cell`. Every node goes through a highway connection,
    Zilly et al. 2016, arXiv:1607.03474: of its activation and of what it reads, a gate takes the
    mean. Everything is unrolled over `length` words from a state of zeros, and the ops of a part
    are named after it: `embedding`, `node_2/step_3`, `cell/step_3` (the mean of the nodes that
    no other reads), `softmax/step_3`, `update/node_2`; gradients stand in the same scopes
    under `gradient_tape`.

    Pham et al. 2018, arXiv:1802.03268, section 2.1: for Penn Treebank, without dropout; the
    embedding is its own and not the softmax's. The widths are assumed.

    Args:
        seed: of the cell; the same seed gives the same one.
        nodes: nodes of the cell.
        batch: sentences in a batch.
        length: words in a sentence.
        hidden: units of a node and of an embedding.
        vocabulary: words of the language.
        optimizer: `sgd` or `adam`.
        learning_rate: step size.
        clip: largest global norm of the gradients; 0 for no limit.

    Returns:
        A ConcreteFunction of `words` (batch, length + 1), word numbers, which returns the mean
        cross-entropy of a word.

    Raises:
        PlacetoError: a size below 1, an unknown optimizer.
    """
    import tensorflow as tf

    check_sizes(
        "enas_rnn", nodes=nodes, batch=batch, length=length, hidden=hidden, vocabulary=vocabulary
    )
    cell = sampled_recurrent_cell(nodes, random.Random(seed))
    shapes: dict[str, tuple[int, ...]] = {"embedding/table": (vocabulary, hidden)}
    for number, node in enumerate(cell):
        read = 2 * hidden if node.source < 0 else hidden
        shapes[f"node_{number}/kernel"] = (read, 2 * hidden)
    shapes["softmax/kernel"] = (hidden, vocabulary)
    shapes["softmax/bias"] = (vocabulary,)
    variables = uniform_variables(shapes, 0.04)
    return training_function(
        lambda words: _loss(variables, cell, hidden, words),
        variables,
        [tf.TensorSpec((batch, length + 1), tf.int32, "words")],
        Optimizer(optimizer, learning_rate, variables),
        clip,
    )


def _loss(variables: dict[str, Any], cell: Sequence[Node], hidden: int, words: Any) -> Any:
    import tensorflow as tf

    with tf.name_scope("embedding/"):
        given = words[:, :-1]
    batch, length = given.shape
    inputs = embedded(variables, "embedding", given)
    with tf.name_scope("cell/start/"):
        state = tf.zeros((batch, hidden))
    losses = []
    for step, word in enumerate(inputs):
        state = _stepped(variables, cell, step, word, state)
        losses.append(word_loss(variables, step, state, words))
    return mean_loss(losses, batch * length)


def _stepped(
    variables: dict[str, Any], cell: Sequence[Node], step: int, word: Any, state: Any
) -> Any:
    """(batch, hidden) the cell's output at a step."""
    import tensorflow as tf

    functions = {
        "tanh": tf.tanh,
        "relu": tf.nn.relu,
        "sigmoid": tf.sigmoid,
        "identity": lambda value: value,
    }
    outputs: list[Any] = []
    for number, node in enumerate(cell):
        with tf.name_scope(f"node_{number}/step_{step}/"):
            carried = state if node.source < 0 else outputs[node.source]
            read = tf.concat([word, state], axis=1) if node.source < 0 else carried
            gate, value = tf.split(tf.matmul(read, variables[f"node_{number}/kernel"]), 2, axis=1)
            activated = functions[node.activation](value)
            outputs.append(carried + tf.sigmoid(gate) * (activated - carried))
    ends = unread(cell)
    with tf.name_scope(f"cell/step_{step}/"):
        total = tf.add_n([outputs[end] for end in ends]) if len(ends) > 1 else outputs[ends[0]]
        return total / len(ends)
