"""`package.module:function?…`: a training step that the user's own code makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeto.extraction.keras_step import STEP_OPTIONS, keras_step
from placeto.extraction.source import Source, take_options
from placeto.extraction.tracing import training_step
from placeto.extraction.user_code import find_function, parameters, running
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from placeto.extraction.step import TrainingStep


def load(source: Source) -> TrainingStep:
    """The training step that a function returns.

    The function returns a ConcreteFunction, a tf.function with an `input_signature`, or a Keras
    model, for which the options of `keras_step` can be given beside the function's own.

    Raises:
        PlacetoError: no such module or function, unknown options, or something else returned.
    """
    import keras
    import tensorflow as tf

    make = find_function(source)
    own = parameters(source, make)
    options = take_options(source, {**STEP_OPTIONS, **own}, own)
    # What the function takes under the same name is its own.
    step = {key: default if key in own else options[key] for key, default in STEP_OPTIONS.items()}
    with running(source):
        made = make(**{key: options[key] for key in own if key in source.options})
        if isinstance(made, keras.Model):
            return keras_step(made, source.target, step)
    for key in source.options:
        if key not in own:
            raise PlacetoError(
                f"{source.text}: {source.target} takes no {key!r}; "
                f"options: {', '.join(own) or 'none'}"
            )
    if isinstance(made, tf.types.experimental.PolymorphicFunction):
        if made.input_signature is None and not isinstance(
            made, tf.types.experimental.ConcreteFunction
        ):
            raise PlacetoError(
                f"{source.text}: the tf.function has no input_signature; give it one, or return "
                "its get_concrete_function(...)"
            )
        with running(source):
            made = made.get_concrete_function()
    if not isinstance(made, tf.types.experimental.ConcreteFunction):
        raise PlacetoError(
            f"{source.text}: returned {type(made).__name__}, expected a ConcreteFunction, a "
            "tf.function with an input_signature, or a Keras model; a torch.nn.Module comes from a "
            "module that imports torch, and not TensorFlow"
        )
    return training_step(made, source.target)
