"""The training step of a Keras model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.extraction.tracing import training_step
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from placeto.extraction.step import TrainingStep

OPTIMIZERS = ("sgd", "momentum", "rmsprop", "adam")
STEP_OPTIONS = {"batch": 32, "optimizer": "momentum", "learning_rate": 0.01, "loss": "auto"}
_LOSSES = ("auto", "crossentropy", "mse")


def keras_step(model: Any, name: str, options: Mapping[str, Any]) -> TrainingStep:
    """The step that fits a Keras model to one batch.

    Args:
        model: a built `keras.Model`.
        name: what the graph is to be called.
        options: `STEP_OPTIONS`, resolved: batch size; optimizer; learning rate; loss, which is
            by default the cross-entropy for an output of over one class that ends in a softmax,
            and the mean square otherwise.

    Raises:
        PlacetoError: a bad option, or an input with an unknown dimension beside the batch.
    """
    import keras
    import tensorflow as tf

    batch = options["batch"]
    if batch < 1:
        raise PlacetoError(f"{name}: batch={batch} must be at least 1")
    optimizer = _optimizer(options["optimizer"], options["learning_rate"], name)
    optimizer.build(model.trainable_variables)
    inputs = [_spec(tensor, batch, name) for tensor in model.inputs]
    losses = [_loss(tensor, options["loss"], name) for tensor in model.outputs]
    labels = [
        tf.TensorSpec([batch, *tensor.shape[1 : None if dense else -1]], dtype, f"label_{number}")
        for number, (tensor, (_, dtype, dense)) in enumerate(
            zip(model.outputs, losses, strict=True)
        )
    ]

    def step(inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            outputs = keras.tree.flatten(model(_packed(model, inputs), training=True))
            parts = [
                loss(label, output)
                for (loss, _, _), label, output in zip(losses, labels, outputs, strict=True)
            ]
            parts += model.losses
            total = tf.add_n(parts) if len(parts) > 1 else parts[0]
        gradients = tape.gradient(total, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return total

    traced = tf.function(step, autograph=False).get_concrete_function(inputs, labels)
    return training_step(traced, name, _names([*model.variables, *optimizer.variables]))


def _packed(model: Any, inputs: Any) -> Any:
    import keras

    # A Sequential model is one in an inner model.
    structure = (getattr(model, "_functional", None) or model)._inputs_struct
    return keras.tree.pack_sequence_as(structure, inputs)


def _names(variables: Iterable[Any]) -> dict[int, str]:
    return {id(variable.value.handle): variable.path for variable in variables}


def _spec(tensor: Any, batch: int, name: str) -> Any:
    import tensorflow as tf

    shape = [batch, *tensor.shape[1:]]
    if None in shape:
        raise PlacetoError(
            f"{name}: input {tensor.name!r} has shape {tuple(tensor.shape)}; every dimension but "
            "the batch must be known"
        )
    return tf.TensorSpec(shape, tensor.dtype, tensor.name)


def _loss(output: Any, choice: str, name: str) -> tuple[Any, str, bool]:
    import keras

    if choice not in _LOSSES:
        raise PlacetoError(f"{name}: loss={choice} is unknown; losses: {', '.join(_LOSSES)}")
    operation = output._keras_history.operation
    softmax = getattr(operation, "activation", None) is keras.activations.softmax or isinstance(
        operation, keras.layers.Softmax
    )
    if choice == "crossentropy" or (choice == "auto" and softmax):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=not softmax), "int32", False
    return keras.losses.MeanSquaredError(), "float32", True


def _optimizer(choice: str, learning_rate: float, name: str) -> Any:
    import keras

    if choice == "sgd":
        return keras.optimizers.SGD(learning_rate)
    if choice == "momentum":
        return keras.optimizers.SGD(learning_rate, momentum=0.9)
    if choice == "rmsprop":
        return keras.optimizers.RMSprop(learning_rate)
    if choice == "adam":
        return keras.optimizers.Adam(learning_rate)
    raise PlacetoError(
        f"{name}: optimizer={choice} is unknown; optimizers: {', '.join(OPTIMIZERS)}"
    )
