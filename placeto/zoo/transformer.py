"""A Transformer encoder that is trained to fill in masked words, as BERT."""

from __future__ import annotations

from typing import Any

from placeto.support.errors import PlacetoError
from placeto.zoo.optimizers import Optimizer
from placeto.zoo.training import check_sizes, training_function, uniform_variables

_POSITIONS = 512
_SEGMENTS = 2
_EPSILON = 1e-12


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
) -> Any:
    """The training step of a BERT-like encoder on masked words.

    Embeddings of words, positions and segments are added up; each of `layers` layers has
    self-attention of `heads` heads and two dense layers, 4 * `hidden` units wide between them, each
    with a residual connection and a normalization after it; the words at `masked` positions of each
    sentence are guessed by a softmax whose weights are the embeddings. The ops of a part are named
    after it: `embedding`, `encoder/layer_0/attention`, `encoder/layer_0/feed_forward`,
    `softmax`, `update/encoder/layer_0`; gradients stand in the same scopes under `gradient_tape`.

    Vaswani et al. 2017, arXiv:1706.03762; Devlin et al. 2018, arXiv:1810.04805, of whose base model
    sizes, optimizer and clipping are, without dropout, padding, weight decay and the guess at
    the next sentence; length and masked words are those of most of its training.

    Args:
        layers: encoder layers, from 1.
        batch: sentences in a batch.
        length: words in a sentence, up to 512.
        hidden: width of an embedding and of a layer, a multiple of `heads`.
        heads: attention heads.
        vocabulary: words of the language.
        masked: words to guess in a sentence.
        optimizer: `sgd` or `adam`.
        learning_rate: step size.
        clip: largest global norm of the gradients; 0 for no limit.

    Returns:
        A ConcreteFunction of `words` and `segments` (batch, length), and of `positions` and
        `wanted` (batch, masked), all whole numbers, which returns the mean cross-entropy of a
        masked word.

    Raises:
        PlacetoError: a size below 1, a sentence too long, heads that do not divide the width, an
            unknown optimizer.
    """
    import tensorflow as tf

    check_sizes(
        "transformer",
        layers=layers,
        batch=batch,
        length=length,
        hidden=hidden,
        heads=heads,
        vocabulary=vocabulary,
        masked=masked,
    )
    if length > _POSITIONS:
        raise PlacetoError(f"transformer: length={length} must be at most {_POSITIONS}")
    if hidden % heads:
        raise PlacetoError(f"transformer: hidden={hidden} must be a multiple of heads={heads}")
    # The same deviation as BERT's, 0.02.
    variables = uniform_variables(_shapes(layers, hidden, vocabulary), 0.02 * 3**0.5)

    def loss(words: Any, segments: Any, positions: Any, wanted: Any) -> Any:
        rows = _embedded(variables, words, segments)
        for layer in range(layers):
            rows = _layer(variables, f"encoder/layer_{layer}", rows, length, heads)
        return _loss(variables, rows, length, positions, wanted)

    return training_function(
        loss,
        variables,
        [
            tf.TensorSpec((batch, length), tf.int32, "words"),
            tf.TensorSpec((batch, length), tf.int32, "segments"),
            tf.TensorSpec((batch, masked), tf.int32, "positions"),
            tf.TensorSpec((batch, masked), tf.int32, "wanted"),
        ],
        Optimizer(optimizer, learning_rate, variables),
        clip,
    )


def _shapes(layers: int, hidden: int, vocabulary: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embedding/words": (vocabulary, hidden),
        "embedding/positions": (_POSITIONS, hidden),
        "embedding/segments": (_SEGMENTS, hidden),
        **_norm_shapes("embedding", hidden),
    }
    for layer in range(layers):
        name = f"encoder/layer_{layer}"
        for part in ("query", "key", "value", "output"):
            shapes |= _dense_shapes(f"{name}/attention/{part}", hidden, hidden)
        shapes |= _norm_shapes(f"{name}/attention", hidden)
        shapes |= _dense_shapes(f"{name}/feed_forward/wide", hidden, 4 * hidden)
        shapes |= _dense_shapes(f"{name}/feed_forward/narrow", 4 * hidden, hidden)
        shapes |= _norm_shapes(f"{name}/feed_forward", hidden)
    shapes |= _dense_shapes("softmax/dense", hidden, hidden)
    shapes |= _norm_shapes("softmax", hidden)
    shapes["softmax/bias"] = (vocabulary,)
    return shapes


def _dense_shapes(name: str, width: int, units: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/kernel": (width, units), f"{name}/bias": (units,)}


def _norm_shapes(name: str, hidden: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/norm/scale": (hidden,), f"{name}/norm/offset": (hidden,)}


def _embedded(variables: dict[str, Any], words: Any, segments: Any) -> Any:
    """(batch * length, hidden) the rows that the first layer gets."""
    import tensorflow as tf

    batch, length = words.shape
    with tf.name_scope("embedding/"):
        total = _taken(variables["embedding/words"], words)
        total += _taken(variables["embedding/segments"], segments)
        total += variables["embedding/positions"][:length]
        rows = tf.reshape(total, (batch * length, total.shape[2]))
        return _norm(variables, "embedding", rows)


def _taken(rows: Any, numbers: Any) -> Any:
    """The rows of these numbers; their gradient is of as many rows as there are to take from.

    TensorFlow would hand on the gradients of the rows taken, and every op that gets them would
    spread them out for itself, the embedding's outside of all scopes.
    """
    import tensorflow as tf

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def taken(source: Any) -> tuple[Any, Any]:
        found = tf.gather(source, numbers)

        def gradient(upstream: Any) -> Any:
            with tf.name_scope(f"gradient_tape/{found.op.name}/"):
                return tf.math.unsorted_segment_sum(upstream, numbers, rows.shape[0])

        return found, gradient

    return taken(tf.convert_to_tensor(rows))


def _layer(variables: dict[str, Any], name: str, rows: Any, length: int, heads: int) -> Any:
    import tensorflow as tf

    part = f"{name}/attention"
    with tf.name_scope(f"{part}/"):
        answer = _attention(variables, part, rows, length, heads)
        rows = _norm(variables, part, rows + answer)
    part = f"{name}/feed_forward"
    with tf.name_scope(f"{part}/"):
        wide = tf.nn.gelu(_dense(variables, f"{part}/wide", rows))
        return _norm(variables, part, rows + _dense(variables, f"{part}/narrow", wide))


def _attention(variables: dict[str, Any], name: str, rows: Any, length: int, heads: int) -> Any:
    import tensorflow as tf

    hidden = rows.shape[1]
    each = hidden // heads

    def split(part: str) -> Any:
        """(batch, heads, length, each)."""
        dense = _dense(variables, f"{name}/{part}", rows)
        return tf.transpose(tf.reshape(dense, (-1, length, heads, each)), (0, 2, 1, 3))

    query, key, value = split("query"), split("key"), split("value")
    scores = tf.matmul(query * each**-0.5, key, transpose_b=True)
    answers = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
    return _dense(variables, f"{name}/output", tf.reshape(answers, (-1, hidden)))


def _loss(variables: dict[str, Any], rows: Any, length: int, positions: Any, wanted: Any) -> Any:
    import tensorflow as tf

    batch, masked = positions.shape
    with tf.name_scope("softmax/"):
        start = tf.range(0, batch * length, length)[:, tf.newaxis]
        asked = _taken(rows, tf.reshape(start + positions, (batch * masked,)))
        guess = _norm(variables, "softmax", tf.nn.gelu(_dense(variables, "softmax/dense", asked)))
        logits = tf.nn.bias_add(
            tf.matmul(guess, variables["embedding/words"], transpose_b=True),
            variables["softmax/bias"],
        )
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(wanted, (-1,)), logits)
        )


def _dense(variables: dict[str, Any], name: str, rows: Any) -> Any:
    import tensorflow as tf

    return tf.nn.bias_add(tf.matmul(rows, variables[f"{name}/kernel"]), variables[f"{name}/bias"])


def _norm(variables: dict[str, Any], name: str, rows: Any) -> Any:
    """Layer normalization of Ba et al. 2016, arXiv:1607.06450."""
    import tensorflow as tf

    mean, variance = tf.nn.moments(rows, axes=[1], keepdims=True)
    scale, offset = variables[f"{name}/norm/scale"], variables[f"{name}/norm/offset"]
    return tf.nn.batch_normalization(rows, mean, variance, offset, scale, _EPSILON)
