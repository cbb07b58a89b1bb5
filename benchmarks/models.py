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
    inputs = Input((length, width))
    return Model(inputs, _encoded(inputs, width, heads, depth))


def recommender(tables: int = 6, rows: int = 20_000, width: int = 64, hidden: int = 512) -> Any:
    """Tables of embeddings, dot products of what they give, dense layers (Naumov et al. 2019)."""
    numbers = Input((hidden,))
    x = layers.Dense(width, "relu")(layers.Dense(hidden, "relu")(numbers))
    kinds = [Input((8,), dtype="int32") for _ in range(tables)]
    found = [layers.GlobalAveragePooling1D()(layers.Embedding(rows, width)(kind)) for kind in kinds]
    pairs = [layers.Dot(1)([x, each]) for each in found]
    x = layers.Concatenate()([x, *found, *pairs])
    for _ in range(2):
        x = layers.Dense(hidden, "relu")(x)
    return Model([numbers, *kinds], layers.Dense(1)(x))


def pyramid(width: int = 24, size: int = 32, depth: int = 3) -> Any:
    """Convolutions to small pictures and up again, with short cuts (Ronneberger et al. 2015)."""
    x = inputs = Input((size, size, 3))
    kept = []
    for level in range(depth):
        x = layers.Conv2D(width << level, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(width << depth, 3, padding="same", activation="relu")(x)
    for level in reversed(range(depth)):
        x = layers.Concatenate()([layers.UpSampling2D()(x), kept[level]])
        x = layers.Conv2D(width << level, 3, padding="same", activation="relu")(x)
    return Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def siamese(width: int = 32, size: int = 24, depth: int = 3) -> Any:
    """Two pictures, each through convolutions of its own, and what they have in common."""
    inputs = [Input((size, size, 3)), Input((size, size, 3))]
    ends = []
    for x in inputs:
        for level in range(depth):
            x = layers.Conv2D(width << level, 3, padding="same", activation="relu")(x)
            x = layers.BatchNormalization()(x) if level else x
            x = layers.MaxPooling2D()(x) if level < depth - 1 else x
        ends.append(layers.Dense(128)(layers.GlobalAveragePooling2D()(x)))
    return Model(inputs, layers.Dense(1)(layers.Multiply()(ends)))


def translation(hidden: int = 256, length: int = 8) -> Any:
    """LSTM layers that read, and one that writes and looks back, unrolled (Luong et al. 2015)."""
    read, written = Input((length, hidden)), Input((length, hidden))
    memory, *state = layers.LSTM(hidden, unroll=True, return_sequences=True, return_state=True)(
        layers.LSTM(hidden, unroll=True, return_sequences=True)(read)
    )
    x = layers.LSTM(hidden, unroll=True, return_sequences=True)(written, initial_state=state)
    x = layers.Concatenate()([x, layers.Attention()([x, memory])])
    return Model([read, written], layers.Dense(1000)(x))


def mixer(patches: int = 64, width: int = 192, depth: int = 3) -> Any:
    """Dense layers over places and over channels in turn (Tolstikhin et al. 2021)."""
    x = inputs = Input((patches, width))
    for _ in range(depth):
        across = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        across = layers.Dense(patches)(layers.Dense(2 * patches, "gelu")(across))
        x = layers.Add()([x, layers.Permute((2, 1))(across)])
        more = layers.Dense(4 * width, "gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(width)(more)])
    return Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def encoder(width: int = 384, heads: int = 6, depth: int = 4, length: int = 64) -> Any:
    """A transformer's encoder over words, with a label a sentence (Vaswani et al. 2017)."""
    words = Input((length,), dtype="int32")
    return Model(words, _encoded(layers.Embedding(5_000, width)(words), width, heads, depth))


def _encoded(x: Any, width: int, heads: int, depth: int) -> Any:
    for _ in range(depth):
        seen = layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, seen]))
        more = layers.Dense(width)(layers.Dense(4 * width, "relu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, more]))
    return layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def language(hidden: int = 512, words: int = 5_000, length: int = 16) -> Any:
    """Two LSTM layers, unrolled, that guess every next word (Zaremba et al. 2014)."""
    read = Input((length,), dtype="int32")
    x = layers.Embedding(words, hidden)(read)
    for _ in range(2):
        x = layers.LSTM(hidden, unroll=True, return_sequences=True)(x)
    return Model(read, layers.Dense(words, "softmax")(x))
