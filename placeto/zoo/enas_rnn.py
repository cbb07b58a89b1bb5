"""A language model of a recurrent cell that ENAS could sample, unrolled."""

import random
from typing import Any

import tensorflow as tf

from placeto.zoo.cells import RecurrentCell, sampled_recurrent_cell, unread
from placeto.zoo.recurrent import embedded, mean_loss, word_loss
from placeto.zoo.training import Shapes, sizes_checked, training_function, uniform_variables

_FUNCTIONS = {
    "tanh": tf.tanh,
    "relu": tf.nn.relu,
    "sigmoid": tf.sigmoid,
    "identity": lambda value: value,
}


@sizes_checked
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
    microbatches: int = 1,
) -> Any:
    """The training step of a language model of one recurrent cell.

    The cell is drawn as by `cells.sampled_recurrent_cell`; the same `seed` gives the same one.
    Every node goes through a highway connection, Zilly et al. 2016, arXiv:1607.03474: of its
    activation and of what it reads, a gate takes the mean. Nodes and embeddings have `hidden`
    units. Everything is unrolled over `length` words from a state of zeros, and the ops of a part
    are named after it: `embedding`, `node_2/step_3`, `cell/step_3` (the mean of the nodes that
    no other reads), `softmax/step_3`, `update/node_2`; gradients stand in the same scopes
    under `gradient_tape`.

    Pham et al. 2018, arXiv:1802.03268, section 2.1: for Penn Treebank, without dropout; the
    embedding is its own and not the softmax's. The widths are assumed.

    Returns:
        A ConcreteFunction of `words` (batch, length + 1), word numbers, which returns the mean
        cross-entropy of a word.

    Raises:
        PlacetoError: a size below 1, an unknown optimizer; see `training_function`.
    """
    cell = sampled_recurrent_cell(nodes, random.Random(seed))
    shapes: Shapes = {"embedding/table": (vocabulary, hidden)}
    for number, node in enumerate(cell):
        read = 2 * hidden if node.source < 0 else hidden
        shapes[f"node_{number}/kernel"] = (read, 2 * hidden)
    shapes |= {"softmax/kernel": (hidden, vocabulary), "softmax/bias": (vocabulary,)}
    variables = uniform_variables(shapes, 0.04)

    def loss(words: Any) -> Any:
        with tf.name_scope("embedding/"):
            given = words[:, :-1]
        inputs = embedded(variables, "embedding", given)
        with tf.name_scope("cell/start/"):
            state = tf.zeros((batch, hidden))
        losses = []
        for step, word in enumerate(inputs):
            state = _stepped(variables, cell, step, word, state)
            losses.append(word_loss(variables, step, state, words))
        return mean_loss(losses, batch * length)

    inputs = [tf.TensorSpec((batch, length + 1), tf.int32, "words")]
    return training_function(loss, variables, inputs, optimizer, learning_rate, clip, microbatches)


def _stepped(
    variables: dict[str, Any], cell: RecurrentCell, step: int, word: Any, state: Any
) -> Any:
    """(batch, hidden) the cell's output at a step."""
    outputs: list[Any] = []
    for number, node in enumerate(cell):
        with tf.name_scope(f"node_{number}/step_{step}/"):
            carried = state if node.source < 0 else outputs[node.source]
            read = tf.concat([word, state], axis=1) if node.source < 0 else carried
            gate, value = tf.split(tf.matmul(read, variables[f"node_{number}/kernel"]), 2, axis=1)
            activated = _FUNCTIONS[node.activation](value)
            outputs.append(carried + tf.sigmoid(gate) * (activated - carried))
    ends = unread(cell)
    with tf.name_scope(f"cell/step_{step}/"):
        total = tf.add_n([outputs[end] for end in ends]) if len(ends) > 1 else outputs[ends[0]]
        return total / len(ends)
