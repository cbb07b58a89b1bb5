"""A loss made a training step: variables, gradients, their clipping, the update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError
from placeto.zoo.optimizers import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def check_sizes(model: str, **sizes: int) -> None:
    """Checks the sizes that a model is asked for.

    Raises:
        PlacetoError: one is below 1.
    """
    for key, value in sizes.items():
        if value < 1:
            raise PlacetoError(f"{model}: {key}={value} must be at least 1")


def uniform_variables(shapes: Mapping[str, tuple[int, ...]], limit: float) -> dict[str, Any]:
    """Variables of the given shapes by name, the same ones every time.

    Args:
        shapes: name -> shape.
        limit: weights are drawn uniformly from [-limit, limit]; a name that ends in `bias` or
            `offset` gets zeros, one that ends in `scale` ones.
    """
    import tensorflow as tf

    variables = {}
    for number, (name, shape) in enumerate(shapes.items()):
        if name.endswith(("bias", "offset")):
            value = tf.zeros(shape)
        elif name.endswith("scale"):
            value = tf.ones(shape)
        else:
            value = tf.random.stateless_uniform(shape, (0, number), -limit, limit)
        variables[name] = tf.Variable(value, name=name)
    return variables


def training_function(
    loss: Callable[..., Any],
    variables: dict[str, Any],
    inputs: Sequence[Any],
    update: Optimizer,
    clip: float,
) -> Any:
    """Traces one step of training: the loss, its gradients, their clipping, the update.

    Args:
        loss: called with a tensor for each of `inputs`; returns a scalar.
        variables: name -> variable, all of which the loss depends on.
        inputs: `tf.TensorSpec`s with names.
        update: the optimizer of these variables.
        clip: largest global norm of the gradients; 0 for no limit.

    Returns:
        A ConcreteFunction of the inputs, which returns the loss.
    """
    import tensorflow as tf

    def step(*tensors: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(*tensors)
        gradients = tape.gradient(value, list(variables.values()))
        if clip > 0:
            with tf.name_scope("clip/"):
                gradients, _ = tf.clip_by_global_norm(gradients, clip)
        update.apply(gradients)
        return value

    return tf.function(step, autograph=False).get_concrete_function(*inputs)
