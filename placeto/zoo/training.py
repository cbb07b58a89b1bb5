"""A loss made a training step: variables, gradients, their clipping, the update.

An update is one TensorFlow op a variable, as the papers' models have them.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

import tensorflow as tf

from placeto.support.errors import PlacetoError
from placeto.zoo.microbatches import checked, differentiated

Shapes = dict[str, tuple[int, ...]]
Update = Callable[[Sequence[Any]], None]
_Parameters = ParamSpec("_Parameters")
_BETAS, _EPSILON = (0.9, 0.999), 1e-8


def sizes_checked(build: Callable[_Parameters, Any]) -> Callable[_Parameters, Any]:
    """A model that refuses a size below 1; sizes are its whole numbers by default, but a seed.

    Of a model of several microbatches, `batch` is what they have together; it is built for one.
    """
    signature = inspect.signature(build)

    @functools.wraps(build)
    def built(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, parameter in signature.parameters.items():
            value = given.arguments[name]
            if isinstance(parameter.default, int) and name != "seed" and value < 1:
                raise PlacetoError(f"{build.__name__}: {name}={value} must be at least 1")
        if count := given.arguments.get("microbatches"):
            given.arguments["batch"] = checked(build.__name__, given.arguments["batch"], count)
        return build(*given.args, **given.kwargs)

    return built


def uniform_variables(shapes: Mapping[str, tuple[int, ...]], limit: float) -> dict[str, Any]:
    """Variables of the given shapes by name, the same ones every time.

    Weights are drawn uniformly from [-`limit`, `limit`]; a name that ends in `bias` or `offset`
    gets zeros, one that ends in `scale` ones.
    """
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
    optimizer: str,
    learning_rate: float,
    clip: float,
    microbatches: int = 1,
) -> Any:
    """Traces one step of training: the loss, its gradients, their clipping, the update.

    Args:
        loss: called with a tensor for each of `inputs`; returns a mean over their examples.
        variables: name -> variable, all of which the loss depends on.
        inputs: `tf.TensorSpec`s with names, of one microbatch.
        optimizer: `sgd`, or `adam` (Kingma and Ba 2014, arXiv:1412.6980).
        learning_rate: step size.
        clip: largest global norm of the gradients; 0 for no limit.
        microbatches: how many parts the batch comes in, one update for all.

    Returns:
        A ConcreteFunction of the inputs of each microbatch, which returns the mean loss.

    Raises:
        PlacetoError: an unknown optimizer.
    """
    optimizers = {"sgd": _descent, "adam": _adam}
    if optimizer not in optimizers:
        raise PlacetoError(f"optimizer={optimizer} is unknown; optimizers: {', '.join(optimizers)}")
    update = optimizers[optimizer](variables, learning_rate)

    def step(*tensors: Any) -> Any:
        parts = (tensors[at : at + len(inputs)] for at in range(0, len(tensors), len(inputs)))
        each = [functools.partial(loss, *part) for part in parts]
        value, gradients = differentiated(each, list(variables.values()))
        if clip > 0:
            with tf.name_scope("clip/"):
                gradients, _ = tf.clip_by_global_norm(gradients, clip)
        update(gradients)
        return value

    given = list(inputs) * microbatches
    return tf.function(step, autograph=False).get_concrete_function(*given)


def _descent(variables: dict[str, Any], learning_rate: float) -> Update:
    def update(gradients: Sequence[Any]) -> None:
        for (name, variable), gradient in zip(variables.items(), gradients, strict=True):
            with tf.name_scope(f"update/{name}/"):
                if isinstance(gradient, tf.IndexedSlices):
                    tf.raw_ops.ResourceScatterSub(
                        resource=variable.handle,
                        indices=gradient.indices,
                        updates=gradient.values * learning_rate,
                    )
                else:
                    tf.raw_ops.ResourceApplyGradientDescent(
                        var=variable.handle, alpha=learning_rate, delta=gradient
                    )

    return update


def _adam(variables: dict[str, Any], learning_rate: float) -> Update:
    slots = [
        [tf.Variable(tf.zeros(variable.shape), name=f"{name}/adam_{slot}") for slot in "mv"]
        for name, variable in variables.items()
    ]
    powers = [tf.Variable(beta, name=f"adam/beta_{i}_power") for i, beta in enumerate(_BETAS, 1)]

    def update(gradients: Sequence[Any]) -> None:
        values = [power.read_value() for power in powers]
        for (name, variable), gradient, (first, second) in zip(
            variables.items(), gradients, slots, strict=True
        ):
            with tf.name_scope(f"update/{name}/"):
                tf.raw_ops.ResourceApplyAdam(
                    var=variable.handle,
                    m=first.handle,
                    v=second.handle,
                    beta1_power=values[0],
                    beta2_power=values[1],
                    lr=learning_rate,
                    beta1=_BETAS[0],
                    beta2=_BETAS[1],
                    epsilon=_EPSILON,
                    grad=tf.convert_to_tensor(gradient),
                )
        with tf.name_scope("update/adam/"):
            for power, value, beta in zip(powers, values, _BETAS, strict=True):
                power.assign(value * beta)

    return update
