"""Neural machine translation: LSTM encoder and decoder with attention, unrolled."""

from __future__ import annotations

from typing import Any

from placeto.support.errors import PlacetoError
from placeto.zoo.optimizers import Optimizer
from placeto.zoo.recurrent import embedded, lstm, lstm_layer, mean_loss, word_loss
from placeto.zoo.training import check_sizes, training_function, uniform_variables


def nmt(
    layers: int = 2,
    batch: int = 64,
    length: int = 25,
    hidden: int = 1024,
    vocabulary: int = 32000,
    optimizer: str = "sgd",
    learning_rate: float = 0.5,
    clip: float = 5.0,
) -> Any:
    """The training step of an attention model like GNMT.

    Encoder and decoder have `layers` LSTM layers of `hidden` units. The first decoder layer's
    output asks an additive attention over the last encoder layer's outputs; the answer goes into
    every later layer and, with the next word, into the first layer's next step. Each decoder step
    has its own softmax over the vocabulary. Everything is unrolled over `length` words, and the
    ops of a part are named after it: `embedding/source`, `encoder/layer_0/step_3`,
    `attention/step_3`, `decoder/layer_1/step_3`, `softmax/step_3`, `update/encoder/layer_0`;
    gradients stand in the same scopes under `gradient_tape`.

    Wu et al. 2016, arXiv:1609.08144; attention of Bahdanau et al. 2014, arXiv:1409.0473. Vocabulary
    and width are GNMT's, the batch that of Mirhoseini et al. 2017, arXiv:1706.04972.

    Args:
        layers: LSTM layers on either side, from 1.
        batch: sentences in a batch.
        length: words in a sentence, source and target.
        hidden: units of a layer and of an embedding.
        vocabulary: words of either language.
        optimizer: `sgd` or `adam`.
        learning_rate: step size.
        clip: largest global norm of the gradients; 0 for no limit.

    Returns:
        A ConcreteFunction of `source` (batch, length) and `target` (batch, length + 1) word
        numbers, which returns the mean cross-entropy of a word.

    Raises:
        PlacetoError: a size below 1, one layer of one word, an unknown optimizer.
    """
    import tensorflow as tf

    check_sizes(
        "nmt", layers=layers, batch=batch, length=length, hidden=hidden, vocabulary=vocabulary
    )
    if layers == length == 1:
        raise PlacetoError("nmt: with layers=1 and length=1 nothing reads the source; give more")
    # GNMT draws all weights uniformly from [-0.04, 0.04].
    variables = uniform_variables(_shapes(layers, hidden, vocabulary), 0.04)
    return training_function(
        lambda source, target: _loss(variables, layers, source, target),
        variables,
        [
            tf.TensorSpec((batch, length), tf.int32, "source"),
            tf.TensorSpec((batch, length + 1), tf.int32, "target"),
        ],
        Optimizer(optimizer, learning_rate, variables),
        clip,
    )


def _shapes(layers: int, hidden: int, vocabulary: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embedding/source/table": (vocabulary, hidden),
        "embedding/target/table": (vocabulary, hidden),
    }
    for layer in range(layers):
        shapes[f"encoder/layer_{layer}/kernel"] = (2 * hidden, 4 * hidden)
        shapes[f"encoder/layer_{layer}/bias"] = (4 * hidden,)
    for layer in range(layers):
        # Word or layer below, attention's answer, the layer's own last output.
        shapes[f"decoder/layer_{layer}/kernel"] = (3 * hidden, 4 * hidden)
        shapes[f"decoder/layer_{layer}/bias"] = (4 * hidden,)
    shapes["attention/memory_kernel"] = (hidden, hidden)
    shapes["attention/query_kernel"] = (hidden, hidden)
    shapes["attention/score"] = (hidden,)
    shapes["softmax/kernel"] = (hidden, vocabulary)
    shapes["softmax/bias"] = (vocabulary,)
    return shapes


def _loss(variables: dict[str, Any], layers: int, source: Any, target: Any) -> Any:
    import tensorflow as tf

    batch, length = source.shape
    hidden = variables["attention/score"].shape[0]
    words = embedded(variables, "embedding/source", source)
    for layer in range(layers):
        words = lstm_layer(variables, f"encoder/layer_{layer}", words)
    with tf.name_scope("attention/memory/"):
        memory = tf.stack(words, axis=1)  # (batch, length, hidden)
        flat = tf.reshape(memory, (batch * length, hidden))
        keys = tf.reshape(
            tf.matmul(flat, variables["attention/memory_kernel"]), (batch, length, hidden)
        )
    with tf.name_scope("embedding/target/"):
        given = target[:, :-1]
    words = embedded(variables, "embedding/target", given)
    with tf.name_scope("decoder/start/"):
        zeros = tf.zeros((batch, hidden))
    states = [(zeros, zeros)] * layers
    context, losses = zeros, []
    for step in range(length):
        output = words[step]
        for layer in range(layers):
            with tf.name_scope(f"decoder/layer_{layer}/step_{step}/"):
                states[layer] = lstm(
                    variables, f"decoder/layer_{layer}", [output, context], states[layer]
                )
            output = states[layer][0]
            if layer == 0:
                with tf.name_scope(f"attention/step_{step}/"):
                    context = _attend(variables, output, keys, memory)
        losses.append(word_loss(variables, step, output, target))
    return mean_loss(losses, batch * length)


def _attend(variables: dict[str, Any], query: Any, keys: Any, memory: Any) -> Any:
    import tensorflow as tf

    asked = tf.matmul(query, variables["attention/query_kernel"])[:, tf.newaxis, :]
    scores = tf.reduce_sum(tf.tanh(keys + asked) * variables["attention/score"], axis=2)
    weights = tf.nn.softmax(scores)[:, :, tf.newaxis]
    return tf.reduce_sum(weights * memory, axis=1)
