"""`package.module:function?…`: a training step that the user's own code makes."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeto.errors import PlacetoError
from placeto.extraction.keras_step import STEP_OPTIONS, keras_step
from placeto.extraction.source import Source, did_you_mean, take_options
from placeto.extraction.tracing import training_step

if TYPE_CHECKING:
    from collections.abc import Callable

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

    make = _function(source)
    own = _parameters(source, make)
    options = take_options(source, {**STEP_OPTIONS, **own})
    made = make(**{key: options[key] for key in own if key in source.options})
    if isinstance(made, keras.Model):
        return keras_step(made, source.target, {key: options[key] for key in STEP_OPTIONS})
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
        made = made.get_concrete_function()
    if not isinstance(made, tf.types.experimental.ConcreteFunction):
        raise PlacetoError(
            f"{source.text}: returned {type(made).__name__}, expected a ConcreteFunction, a "
            "tf.function with an input_signature, or a Keras model"
        )
    return training_step(made, source.target)


def _function(source: Source) -> Callable[..., Any]:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        module = importlib.import_module(source.scheme)
    except ModuleNotFoundError as error:
        raise PlacetoError(
            f"{source.text}: no module {error.name!r}; run where it can be imported"
        ) from error
    finally:
        sys.path.remove(here)
    made = getattr(module, source.target, None)
    if not callable(made):
        functions = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise PlacetoError(
            f"{source.text}: module {source.scheme!r} has no function {source.target!r}"
            f"{did_you_mean(source.target, functions)}"
        )
    return made  # type: ignore[no-any-return]


def _parameters(source: Source, make: Callable[..., Any]) -> dict[str, Any]:
    defaults = {}
    for each in inspect.signature(make).parameters.values():
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
            continue
        if each.default is each.empty and each.name not in source.options:
            raise PlacetoError(f"{source.text}: {source.target} needs {each.name}=…")
        defaults[each.name] = None if each.default is each.empty else each.default
    return defaults
