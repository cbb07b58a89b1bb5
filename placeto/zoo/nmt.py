"""Neural machine translation: LSTM encoder and decoder with attention, unrolled."""

from typing import Any

import tensorflow as tf

from placeto.support.errors import PlacetoError
from placeto.zoo.recurrent import embedded, lstm, lstm_layer, mean_loss, word_loss
from placeto.zoo.training import Shapes, sizes_checked, training_function, uniform_variables


@sizes_checked
def nmt(
    layers: int = 2,
    batch: int = 64,
    length: int = 25,
    hidden: int = 1024,
    vocabulary: int = 32000,
    optimizer: str = "sgd",
    learning_rate: float = 0.5,
    clip: float = 5.0,
    microbatches: int = 1,
) -> Any:
    """The training step of an attention model like GNMT.

    Encoder and decoder have `layers` LSTM layers of `hidden` units, as many as an embedding has.
    The first decoder layer's output asks an additive attention over the last encoder layer's
    outputs; the answer goes into every later layer and, with the next word, into the first layer's
    next step. Each decoder step has its own softmax over the `vocabulary` words of either language.
    Everything is unrolled over `length` words, source and target, and the ops of a part are named
    after it: `embedding/source`, `encoder/layer_0/step_3`, `attention/step_3`,
    `decoder/layer_1/step_3`, `softmax/step_3`, `update/encoder/layer_0`; gradients stand in the
    same scopes under `gradient_tape`.

    Wu et al. 2016, arXiv:1609.08144; attention of Bahdanau et al. 2014, arXiv:1409.0473. Vocabulary
    and width are GNMT's, the batch that of Mirhoseini et al. 2017, arXiv:1706.04972.

    Returns:
        A ConcreteFunction of `source` (batch, length) and `target` (batch, length + 1) word
        numbers, which returns the mean cross-entropy of a word.

    Raises:
        PlacetoError: a size below 1, one layer of one word, an unknown optimizer; see
            `training_function`.
    """
    if layers == length == 1:
        raise PlacetoError("nmt: with layers=1 and length=1 nothing reads the source; give more")
    # GNMT draws all weights uniformly from [-0.04, 0.04].
    variables = uniform_variables(_shapes(layers, hidden, vocabulary), 0.04)

    def loss(source: Any, target: Any) -> Any:
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
        for step, output in enumerate(words):
            for layer in range(layers):
                name = f"decoder/layer_{layer}"
                with tf.name_scope(f"{name}/step_{step}/"):
                    states[layer] = lstm(variables, name, [output, context], states[layer])
                output = states[layer][0]
                if layer == 0:
                    with tf.name_scope(f"attention/step_{step}/"):
                        context = _attend(variables, output, keys, memory)
            losses.append(word_loss(variables, step, output, target))
        return mean_loss(losses, batch * length)

    inputs = [
        tf.TensorSpec((batch, length), tf.int32, "source"),
        tf.TensorSpec((batch, length + 1), tf.int32, "target"),
    ]
    return training_function(loss, variables, inputs, optimizer, learning_rate, clip, microbatches)


def _shapes(layers: int, hidden: int, vocabulary: int) -> Shapes:
    shapes: Shapes = {
        "embedding/source/table": (vocabulary, hidden),
        "embedding/target/table": (vocabulary, hidden),
    }
    # A decoder's cell sees the word or the layer below, attention's answer, its own last output.
    for side, inputs in (("encoder", 2), ("decoder", 3)):
        for layer in range(layers):
            shapes[f"{side}/layer_{layer}/kernel"] = (inputs * hidden, 4 * hidden)
            shapes[f"{side}/layer_{layer}/bias"] = (4 * hidden,)
    return shapes | {
        "attention/memory_kernel": (hidden, hidden),
        "attention/query_kernel": (hidden, hidden),
        "attention/score": (hidden,),
        "softmax/kernel": (hidden, vocabulary),
        "softmax/bias": (vocabulary,),
    }


def _attend(variables: dict[str, Any], query: Any, keys: Any, memory: Any) -> Any:
    asked = tf.matmul(query, variables["attention/query_kernel"])[:, tf.newaxis, :]
    scores = tf.reduce_sum(tf.tanh(keys + asked) * variables["attention/score"], axis=2)
    weights = tf.nn.softmax(scores)[:, :, tf.newaxis]
    return tf.reduce_sum(weights * memory, axis=1)
