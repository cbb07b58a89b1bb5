"""Small training steps that the tests name as `tests.measurement.steps:function`."""

from typing import Any


def two_layers(rows: int = 64, classes: int = 2) -> Any:
    """Two dense layers in scopes `first` and `second`, learned by gradient descent.

    With `classes=1` a label can be outside of the range, so that an op raises.
    """
    import tensorflow as tf

    first = tf.Variable(tf.random.normal((32, 64), stddev=0.1), name="first")
    second = tf.Variable(tf.random.normal((64, classes), stddev=0.1), name="second")

    @tf.function(
        input_signature=[
            tf.TensorSpec((rows, 32), name="inputs"),
            tf.TensorSpec((rows,), tf.int32, name="labels"),
        ]
    )
    def step(inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(inputs, first))
            outputs = tf.matmul(hidden, second)
            wanted = tf.gather(tf.eye(classes), labels)
            loss = tf.reduce_mean((outputs - wanted) ** 2)
        for variable, gradient in zip(
            (first, second), tape.gradient(loss, (first, second)), strict=True
        ):
            variable.assign_sub(0.1 * gradient)
        return loss

    return step


def large(megabytes: int = 512) -> Any:
    """A step that needs that much memory at once."""
    import tensorflow as tf

    scale = tf.Variable(1.0, name="scale")

    @tf.function(input_signature=[tf.TensorSpec((1024, 256), name="inputs")])
    def step(inputs: Any) -> Any:
        return tf.reduce_sum(scale.assign_add(0.5) * tf.tile(inputs, (megabytes, 1)))

    return step


def two_chains(rows: int = 8192, width: int = 256, length: int = 4) -> Any:
    """Two chains of products, `a` and `b`; the sum of each product is squared in scope `far`."""
    import tensorflow as tf

    weights = {
        name: tf.Variable(tf.random.normal((width, width), stddev=width**-0.5), name=f"{name}_w")
        for name in (f"{chain}{number}" for number in range(length) for chain in "ab")
    }

    @tf.function(input_signature=[tf.TensorSpec((rows, width), name="inputs")])
    def step(inputs: Any) -> Any:
        last = dict.fromkeys("ab", inputs)
        squares = []
        for name, weight in weights.items():
            with tf.name_scope(name):
                last[name[0]] = tf.matmul(last[name[0]], weight)
                total = tf.reduce_sum(last[name[0]])
            with tf.name_scope("far"):
                squares.append(total * total)
        with tf.name_scope("far"):
            return tf.add_n(squares)

    return step
