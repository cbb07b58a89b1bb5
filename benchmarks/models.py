"""Keras models that studies on real workers place: `benchmarks.models:branches?batch=32`."""

from typing import Any

from keras import Input, Model, layers


def branches(width: int = 48, depth: int = 4, size: int = 24) -> Any:
    """Four branches of convolutions of different sizes, side by side and then together."""
    inputs = Input((size, size, 3))
    stem = layers.Conv2D(width, 3, padding="same", activation="relu")(inputs)
    ends = []
    for kernel in (1, 3, 3, 5):
        x = stem
        for _ in range(depth):
            x = layers.Conv2D(width, kernel, padding="same", activation="relu")(x)
        ends.append(layers.GlobalAveragePooling2D()(x))
    return Model(inputs, layers.Dense(10)(layers.Concatenate()(ends)))


def towers(width: int = 1024, depth: int = 4) -> Any:
    """A recommender's two towers of dense layers, for users and for items."""
    inputs = [Input((width,)), Input((width,))]
    ends = []
    for x in inputs:
        for _ in range(depth):
            x = layers.Dense(width, "relu")(x)
        ends.append(x)
    return Model(inputs, layers.Dense(1)(layers.Multiply()(ends)))


def experts(width: int = 512, hidden: int = 2048, count: int = 4) -> Any:
    """A layer of experts that a gate weighs, all of them at work (Jacobs et al. 1991)."""
    inputs = Input((width,))
    gate = layers.Dense(count, "softmax")(inputs)
    ends = []
    for expert in range(count):
        x = layers.Dense(hidden, "relu")(inputs)
        x = layers.Dense(width)(layers.Dense(hidden, "relu")(x))
        ends.append(layers.Multiply()([x, gate[:, expert : expert + 1]]))
    return Model(inputs, layers.Dense(10)(layers.Add()(ends)))


def stack(width: int = 1536, depth: int = 8) -> Any:
    """Dense layers on top of each other: nothing to be done side by side but gradients."""
    x = inputs = Input((width,))
    for _ in range(depth):
        x = layers.Dense(width, "relu")(x)
    return Model(inputs, layers.Dense(10)(x))


def recurrent(hidden: int = 384, depth: int = 2, length: int = 12) -> Any:
    """LSTM layers, unrolled."""
    x = inputs = Input((length, hidden))
    for layer in range(depth):
        x = layers.LSTM(hidden, unroll=True, return_sequences=layer < depth - 1)(x)
    return Model(inputs, layers.Dense(10)(x))


def attention(width: int = 256, heads: int = 4, depth: int = 2, length: int = 32) -> Any:
    """Blocks of a transformer's encoder (Vaswani et al. 2017)."""
    x = inputs = Input((length, width))
    for _ in range(depth):
        seen = layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, seen]))
        more = layers.Dense(width)(layers.Dense(4 * width, "relu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, more]))
    return Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
