"""What unrolled LSTM models are made of: embedding, cell, layer, softmax over words.

Each part puts its ops under a scope that says which part and which step they are, for the
gradients as for the forward ops. `variables` are name -> variable.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def embedded(variables: dict[str, Any], name: str, words: Any) -> list[Any]:
    """(batch, width) rows a step of the table `name/table`, for (batch, length) word numbers."""
    with tf.name_scope(f"{name}/"):
        found = tf.gather(variables[f"{name}/table"], tf.transpose(words))
        return list(tf.unstack(found, axis=0))


def lstm(
    variables: dict[str, Any], name: str, inputs: Sequence[Any], state: tuple[Any, Any]
) -> tuple[Any, Any]:
    """One step of an LSTM cell of weights `name/kernel` and `name/bias`.

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000. The kernel is (width
    of all inputs + hidden, 4 * hidden). Beside its own last output the cell sees `inputs`, of
    (batch, width) each; `state` is the (batch, hidden) last output and last cell. Returned are the
    new ones.
    """
    output, cell = state
    gates = tf.nn.bias_add(
        tf.matmul(tf.concat([*inputs, output], axis=1), variables[f"{name}/kernel"]),
        variables[f"{name}/bias"],
    )
    admit, candidate, forget, emit = tf.split(gates, 4, axis=1)
    cell = cell * tf.sigmoid(forget) + tf.sigmoid(admit) * tf.tanh(candidate)
    return tf.sigmoid(emit) * tf.tanh(cell), cell


def lstm_layer(variables: dict[str, Any], name: str, words: Sequence[Any]) -> list[Any]:
    """An LSTM layer unrolled from a state of zeros, under `name/start` and `name/step_N`.

    It is given one (batch, width) tensor a step, and returns one (batch, hidden) output a step.
    """
    hidden = variables[f"{name}/bias"].shape[0] // 4
    with tf.name_scope(f"{name}/start/"):
        # By this name the op is known in the bundled graphs.
        zeros = tf.zeros((words[0].shape[0], hidden), name="zeros_like")
    state, outputs = (zeros, zeros), []
    for step, word in enumerate(words):
        with tf.name_scope(f"{name}/step_{step}/"):
            state = lstm(variables, name, [word], state)
        outputs.append(state[0])
    return outputs


def word_loss(variables: dict[str, Any], step: int, output: Any, wanted: Any) -> Any:
    """The cross-entropy of one step's words, summed over the batch, under `softmax/step_N`.

    Args:
        variables: among them `softmax/kernel` (hidden, vocabulary) and `softmax/bias`.
        step: which step.
        output: (batch, hidden) what the last layer said.
        wanted: (batch, length + 1) words, of which the one after this step is wanted.
    """
    with tf.name_scope(f"softmax/step_{step}/"):
        logits = tf.nn.bias_add(
            tf.matmul(output, variables["softmax/kernel"]), variables["softmax/bias"]
        )
        return tf.reduce_sum(
            tf.nn.sparse_softmax_cross_entropy_with_logits(wanted[:, step + 1], logits)
        )


def mean_loss(losses: Sequence[Any], words: int) -> Any:
    """The mean cross-entropy of a word, from the steps' sums, under `softmax/loss`."""
    with tf.name_scope("softmax/loss/"):
        return tf.add_n(list(losses)) / words
