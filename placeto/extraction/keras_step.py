"""The training step of a Keras model."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from placeto.extraction.step import TrainingStep
from placeto.extraction.tracing import training_step
from placeto.support.errors import PlacetoError

STEP_OPTIONS = {"batch": 32, "optimizer": "momentum", "learning_rate": 0.01, "loss": "auto"}
_OPTIMIZERS = {
    "sgd": keras.optimizers.SGD,
    "momentum": partial(keras.optimizers.SGD, momentum=0.9),
    "rmsprop": keras.optimizers.RMSprop,
    "adam": keras.optimizers.Adam,
}
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
    batch = options["batch"]
    if batch < 1:
        raise PlacetoError(f"{name}: batch={batch} must be at least 1")
    choice = options["optimizer"]
    if choice not in _OPTIMIZERS:
        raise PlacetoError(
            f"{name}: optimizer={choice} is unknown; optimizers: {', '.join(_OPTIMIZERS)}"
        )
    optimizer = _OPTIMIZERS[choice](options["learning_rate"])
    optimizer.build(model.trainable_variables)
    inputs = []
    for tensor in model.inputs:
        if None in tensor.shape[1:]:
            raise PlacetoError(
                f"{name}: input {tensor.name!r} has shape {tuple(tensor.shape)}; every dimension "
                "but the batch must be known"
            )
        inputs.append(tf.TensorSpec([batch, *tensor.shape[1:]], tensor.dtype, tensor.name))
    if options["loss"] not in _LOSSES:
        raise PlacetoError(
            f"{name}: loss={options['loss']} is unknown; losses: {', '.join(_LOSSES)}"
        )
    losses = [_loss(tensor, options["loss"]) for tensor in model.outputs]
    labels = [
        tf.TensorSpec([batch, *shape], dtype, f"label_{number}")
        for number, (_, shape, dtype) in enumerate(losses)
    ]
    # A Sequential model is one in an inner model.
    structure = (getattr(model, "_functional", None) or model)._inputs_struct

    def step(inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            given = keras.tree.pack_sequence_as(structure, inputs)
            outputs = keras.tree.flatten(model(given, training=True))
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
    variables = [*model.variables, *optimizer.variables]
    return training_step(traced, name, {id(each.value.handle): each.path for each in variables})


def _loss(output: Any, choice: str) -> tuple[Any, tuple[int, ...], str]:
    """The loss of an output, and of its labels the shape, without the batch, and the dtype."""
    operation = output._keras_history.operation
    softmax = getattr(operation, "activation", None) is keras.activations.softmax or isinstance(
        operation, keras.layers.Softmax
    )
    if choice == "crossentropy" or (choice == "auto" and softmax):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=not softmax)
        return loss, output.shape[1:-1], "int32"
    return keras.losses.MeanSquaredError(), output.shape[1:], "float32"
