"""Updates of variables by one TensorFlow op each, as the papers' models have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIMIZERS = ("sgd", "adam")
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


class Optimizer:
    """Slots of an optimizer for a list of variables, and the ops that update them.

    Args:
        choice: `sgd`, or `adam` (Kingma and Ba 2014, arXiv:1412.6980).
        learning_rate: the step size.
        variables: what is trained, as name -> variable; the slots are made at once.

    Raises:
        PlacetoError: an unknown optimizer.
    """

    def __init__(self, choice: str, learning_rate: float, variables: dict[str, Any]) -> None:
        import tensorflow as tf

        if choice not in OPTIMIZERS:
            raise PlacetoError(
                f"optimizer={choice} is unknown; optimizers: {', '.join(OPTIMIZERS)}"
            )
        self.choice = choice
        self.learning_rate = learning_rate
        self.variables = variables
        self.slots: dict[str, tuple[Any, Any]] = {}
        self.powers: tuple[Any, ...] = ()
        if choice == "adam":
            for name, variable in variables.items():
                self.slots[name] = (
                    tf.Variable(tf.zeros(variable.shape), name=f"{name}/adam_m"),
                    tf.Variable(tf.zeros(variable.shape), name=f"{name}/adam_v"),
                )
            self.powers = (
                tf.Variable(_BETA_1, name="adam/beta_1_power"),
                tf.Variable(_BETA_2, name="adam/beta_2_power"),
            )

    def apply(self, gradients: Sequence[Any]) -> None:
        """Adds the update of every variable to the graph that is being traced.

        Args:
            gradients: one a variable, in order; tensors or `IndexedSlices`.
        """
        import tensorflow as tf

        powers = [power.read_value() for power in self.powers]
        for (name, variable), gradient in zip(self.variables.items(), gradients, strict=True):
            with tf.name_scope(f"update/{name}/"):
                if self.choice == "adam":
                    self._adam(name, variable, tf.convert_to_tensor(gradient), powers)
                elif isinstance(gradient, tf.IndexedSlices):
                    tf.raw_ops.ResourceScatterSub(
                        resource=variable.handle,
                        indices=gradient.indices,
                        updates=gradient.values * self.learning_rate,
                    )
                else:
                    tf.raw_ops.ResourceApplyGradientDescent(
                        var=variable.handle, alpha=self.learning_rate, delta=gradient
                    )
        with tf.name_scope("update/adam/"):
            for power, value, beta in zip(self.powers, powers, (_BETA_1, _BETA_2), strict=False):
                power.assign(value * beta)

    def _adam(self, name: str, variable: Any, gradient: Any, powers: Sequence[Any]) -> None:
        import tensorflow as tf

        first, second = self.slots[name]
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=first.handle,
            v=second.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=self.learning_rate,
            beta1=_BETA_1,
            beta2=_BETA_2,
            epsilon=_EPSILON,
            grad=gradient,
        )
