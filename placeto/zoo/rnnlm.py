"""A recurrent language model: stacked LSTM layers, unrolled."""

from typing import Any

import tensorflow as tf

from placeto.zoo.recurrent import embedded, lstm_layer, mean_loss, word_loss
from placeto.zoo.training import Shapes, sizes_checked, training_function, uniform_variables


@sizes_checked
def rnnlm(
    layers: int = 2,
    batch: int = 64,
    length: int = 35,
    hidden: int = 2048,
    embedding: int = 1024,
    vocabulary: int = 10000,
    optimizer: str = "sgd",
    learning_rate: float = 1.0,
    clip: float = 10.0,
    microbatches: int = 1,
) -> Any:
    """The training step of a language model of stacked LSTM layers.

    Every word goes through `layers` LSTM layers of `hidden` units, and each step's softmax over the
    vocabulary guesses the next word; `embedding` is an embedding's width. Everything is unrolled
    over `length` words from a state of zeros, and the ops of a part are named after it:
    `embedding`, `layer_0/step_3`, `softmax/step_3`, `update/layer_0`; gradients stand in the same
    scopes under `gradient_tape`. A cell needs only the layer below at its step and its own layer a
    step before, which is the grid that Mirhoseini et al. 2017, arXiv:1706.04972, place; the batch
    is theirs.

    Layers, length, vocabulary (Penn Treebank), first weights, learning rate and clipping are
    the large model's of Zaremba et al. 2014, arXiv:1409.2329, without its dropout. The widths are
    assumed, of the order of those of Jozefowicz et al. 2016, arXiv:1602.02410.

    Returns:
        A ConcreteFunction of `words` (batch, length + 1), word numbers, which returns the mean
        cross-entropy of a word.

    Raises:
        PlacetoError: a size below 1, an unknown optimizer; see `training_function`.
    """
    shapes: Shapes = {"embedding/table": (vocabulary, embedding)}
    for layer in range(layers):
        below = hidden if layer else embedding
        shapes[f"layer_{layer}/kernel"] = (below + hidden, 4 * hidden)
        shapes[f"layer_{layer}/bias"] = (4 * hidden,)
    shapes |= {"softmax/kernel": (hidden, vocabulary), "softmax/bias": (vocabulary,)}
    variables = uniform_variables(shapes, 0.04)

    def loss(words: Any) -> Any:
        with tf.name_scope("embedding/"):
            given = words[:, :-1]
        outputs = embedded(variables, "embedding", given)
        for layer in range(layers):
            outputs = lstm_layer(variables, f"layer_{layer}", outputs)
        losses = [word_loss(variables, step, output, words) for step, output in enumerate(outputs)]
        return mean_loss(losses, batch * length)

    inputs = [tf.TensorSpec((batch, length + 1), tf.int32, "words")]
    return training_function(loss, variables, inputs, optimizer, learning_rate, clip, microbatches)
