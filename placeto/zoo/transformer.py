"""A Transformer encoder that is trained to fill in masked words, as BERT."""

from typing import Any

import tensorflow as tf

from placeto.support.errors import PlacetoError
from placeto.zoo.training import Shapes, sizes_checked, training_function, uniform_variables

_POSITIONS = 512
_SEGMENTS = 2
_EPSILON = 1e-12


@sizes_checked
def transformer(
    layers: int = 12,
    batch: int = 32,
    length: int = 128,
    hidden: int = 768,
    heads: int = 12,
    vocabulary: int = 30522,
    masked: int = 20,
    optimizer: str = "adam",
    learning_rate: float = 1e-4,
    clip: float = 1.0,
    microbatches: int = 1,
) -> Any:
    """The training step of a BERT-like encoder on masked words.

    Embeddings of words, positions and segments, `hidden` wide, are added up; each of `layers`
    layers has self-attention of `heads` heads and two dense layers, 4 * `hidden` units wide between
    them, each with a residual connection and a normalization after it; the words at `masked`
    positions of each sentence of `length` words are guessed by a softmax whose weights are the
    embeddings. The ops of a part are named after it: `embedding`, `encoder/layer_0/attention`,
    `encoder/layer_0/feed_forward`, `softmax`, `update/encoder/layer_0`; gradients stand in the same
    scopes under `gradient_tape`.

    Vaswani et al. 2017, arXiv:1706.03762; Devlin et al. 2018, arXiv:1810.04805, of whose base model
    sizes, optimizer and clipping are, without dropout, padding, weight decay and the guess at
    the next sentence; length and masked words are those of most of its training.

    Returns:
        A ConcreteFunction of `words` and `segments` (batch, length), and of `positions` and
        `wanted` (batch, masked), all whole numbers, which returns the mean cross-entropy of a
        masked word.

    Raises:
        PlacetoError: a size below 1, a sentence longer than 512 words, heads that do not divide the
            width, an unknown optimizer; see `training_function`.
    """
    if length > _POSITIONS:
        raise PlacetoError(f"transformer: length={length} must be at most {_POSITIONS}")
    if hidden % heads:
        raise PlacetoError(f"transformer: hidden={hidden} must be a multiple of heads={heads}")
    # The same deviation as BERT's, 0.02.
    variables = uniform_variables(_shapes(layers, hidden, vocabulary), 0.02 * 3**0.5)

    each = hidden // heads

    def dense(name: str, rows: Any) -> Any:
        kernel, bias = variables[f"{name}/kernel"], variables[f"{name}/bias"]
        return tf.nn.bias_add(tf.matmul(rows, kernel), bias)

    def norm(name: str, rows: Any) -> Any:
        """Layer normalization of Ba et al. 2016, arXiv:1607.06450."""
        mean, variance = tf.nn.moments(rows, axes=[1], keepdims=True)
        scale, offset = variables[f"{name}/norm/scale"], variables[f"{name}/norm/offset"]
        return tf.nn.batch_normalization(rows, mean, variance, offset, scale, _EPSILON)

    def split(name: str, rows: Any) -> Any:
        """(batch, heads, length, each)."""
        heads_apart = tf.reshape(dense(name, rows), (-1, length, heads, each))
        return tf.transpose(heads_apart, (0, 2, 1, 3))

    def attention(name: str, rows: Any) -> Any:
        query, key, value = (split(f"{name}/{part}", rows) for part in ("query", "key", "value"))
        scores = tf.matmul(query * each**-0.5, key, transpose_b=True)
        answers = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        return dense(f"{name}/output", tf.reshape(answers, (-1, hidden)))

    def loss(words: Any, segments: Any, positions: Any, wanted: Any) -> Any:
        with tf.name_scope("embedding/"):
            total = _taken(variables["embedding/words"], words)
            total += _taken(variables["embedding/segments"], segments)
            total += variables["embedding/positions"][:length]
            rows = norm("embedding", tf.reshape(total, (batch * length, hidden)))
        for layer in range(layers):
            part = f"encoder/layer_{layer}/attention"
            with tf.name_scope(f"{part}/"):
                rows = norm(part, rows + attention(part, rows))
            part = f"encoder/layer_{layer}/feed_forward"
            with tf.name_scope(f"{part}/"):
                wide = tf.nn.gelu(dense(f"{part}/wide", rows))
                rows = norm(part, rows + dense(f"{part}/narrow", wide))
        with tf.name_scope("softmax/"):
            start = tf.range(0, batch * length, length)[:, tf.newaxis]
            asked = _taken(rows, tf.reshape(start + positions, (batch * masked,)))
            guess = norm("softmax", tf.nn.gelu(dense("softmax/dense", asked)))
            logits = tf.nn.bias_add(
                tf.matmul(guess, variables["embedding/words"], transpose_b=True),
                variables["softmax/bias"],
            )
            return tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(wanted, (-1,)), logits)
            )

    inputs = [tf.TensorSpec((batch, length), tf.int32, name) for name in ("words", "segments")]
    inputs += [tf.TensorSpec((batch, masked), tf.int32, name) for name in ("positions", "wanted")]
    return training_function(loss, variables, inputs, optimizer, learning_rate, clip, microbatches)


def _shapes(layers: int, hidden: int, vocabulary: int) -> Shapes:
    shapes: Shapes = {
        "embedding/words": (vocabulary, hidden),
        "embedding/positions": (_POSITIONS, hidden),
        "embedding/segments": (_SEGMENTS, hidden),
    }

    def dense(name: str, width: int, units: int) -> None:
        shapes.update({f"{name}/kernel": (width, units), f"{name}/bias": (units,)})

    def norm(name: str) -> None:
        shapes.update({f"{name}/norm/scale": (hidden,), f"{name}/norm/offset": (hidden,)})

    norm("embedding")
    for layer in range(layers):
        attention, feed = (
            f"encoder/layer_{layer}/{part}" for part in ("attention", "feed_forward")
        )
        for part in ("query", "key", "value", "output"):
            dense(f"{attention}/{part}", hidden, hidden)
        norm(attention)
        dense(f"{feed}/wide", hidden, 4 * hidden)
        dense(f"{feed}/narrow", 4 * hidden, hidden)
        norm(feed)
    dense("softmax/dense", hidden, hidden)
    norm("softmax")
    return shapes | {"softmax/bias": (vocabulary,)}


def _taken(rows: Any, numbers: Any) -> Any:
    """The rows of these numbers; their gradient is of as many rows as there are to take from.

    TensorFlow would hand on the gradients of the rows taken, and every op that gets them would
    spread them out for itself, the embedding's outside of all scopes.
    """

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def taken(source: Any) -> tuple[Any, Any]:
        found = tf.gather(source, numbers)

        def gradient(upstream: Any) -> Any:
            with tf.name_scope(f"gradient_tape/{found.op.name}/"):
                return tf.math.unsorted_segment_sum(upstream, numbers, rows.shape[0])

        return found, gradient

    return taken(tf.convert_to_tensor(rows))
