"""Small training steps that the tests name as `tests.extraction.training_steps:function`."""

from typing import Any


def tiny(filters: int = 4) -> Any:
    """A convolution and a dense layer; every size can be worked out by hand."""
    import keras

    image = keras.Input((8, 8, 3), name="image")
    hidden = keras.layers.Conv2D(filters, 3, use_bias=False, name="conv")(image)
    hidden = keras.layers.Flatten(name="flatten")(hidden)
    return keras.Model(image, keras.layers.Dense(5, activation="softmax", name="dense")(hidden))


def joined(width: int = 8) -> Any:
    """A table and a layer, and another table that is added: forward passes begin twice."""
    import keras

    near = keras.Input((4,), dtype="int32", name="near")
    far = keras.Input((4,), dtype="int32", name="far")
    hidden = keras.layers.Embedding(20, width, name="near_table")(near)
    hidden = keras.layers.Dense(width, activation="relu", name="near_layer")(hidden)
    hidden = keras.layers.Add(name="far_add")(
        [hidden, keras.layers.Embedding(20, width, name="far_table")(far)]
    )
    return keras.Model(
        [near, far], keras.layers.Dense(5, activation="softmax", name="far_layer")(hidden)
    )


def translator(unroll: bool = True, steps: int = 6) -> Any:
    """Embeddings, an LSTM, attention, dropout and two inputs."""
    import keras

    source = keras.Input((steps,), dtype="int32", name="source")
    target = keras.Input((steps,), dtype="int32", name="target")
    memory = keras.layers.Embedding(50, 16, name="source_table")(source)
    memory = keras.layers.LSTM(16, return_sequences=True, unroll=unroll, name="encoder")(memory)
    words = keras.layers.Embedding(50, 16, name="target_table")(target)
    attended = keras.layers.MultiHeadAttention(2, 8, dropout=0.1, name="attention")(words, memory)
    hidden = keras.layers.LayerNormalization(name="norm")(words + attended)
    output = keras.layers.Dense(50, activation="softmax", name="words")(hidden)
    return keras.Model([source, target], output)


def regression(rows: int = 6, columns: int = 3) -> Any:
    """A ConcreteFunction whose variables nobody else holds."""
    import tensorflow as tf

    weights = tf.Variable(tf.zeros((columns, 1)), name="weights")

    @tf.function(input_signature=[tf.TensorSpec((rows, columns)), tf.TensorSpec((rows, 1))])
    def step(inputs: Any, wanted: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(inputs, weights) - wanted) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    return step.get_concrete_function()


def mistaken() -> Any:
    """A model with a mistake in it."""
    raise AttributeError("there is no such layer")


def big_constant() -> Any:
    """Folding its constants would store 64 MiB."""
    import tensorflow as tf

    weight = tf.Variable(1.0, name="weight")

    @tf.function(input_signature=[])
    def step() -> Any:
        return weight.assign_add(tf.reduce_sum(tf.ones((4096, 4096)) * weight))

    return step


def spelling() -> Any:
    """An op that computes on strings."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((4,), tf.string, name="words")])
    def step(words: Any) -> Any:
        return tf.strings.to_hash_bucket_fast(words, 7)

    return step


def open_ended() -> Any:
    """A tf.function that cannot be traced without arguments."""
    import tensorflow as tf

    return tf.function(lambda value: value + 1)


def nothing() -> int:
    """No training step at all."""
    return 3


def sequential() -> Any:
    import keras

    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(3, kernel_regularizer="l2")])


def dataset() -> Any:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(3)

    @tf.function(input_signature=[])
    def step() -> Any:
        return next(iter(numbers))

    return step.get_concrete_function()


def normalized() -> Any:
    """A model within a model has a batch normalization."""
    import keras

    inner = keras.Sequential([keras.layers.Dense(4), keras.layers.BatchNormalization()])
    inputs = keras.Input((6,), name="inputs")
    return keras.Model(inputs, keras.layers.Dense(1)(inner(inputs)))
