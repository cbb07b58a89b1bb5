"""`keras:MODEL?…`: the models of keras.applications by name."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from placeto.extraction.keras_step import STEP_OPTIONS, keras_step
from placeto.extraction.source import Source, take_options
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from placeto.extraction.step import TrainingStep

_SIDE = 224  # for models of no size of their own, whose authors report this one
_OPTIONS = {**STEP_OPTIONS, "classes": 1000, "image": 0, "channels": 3}


def load(source: Source) -> TrainingStep:
    """The training step of a Keras Application with random weights.

    Options: those of `keras_step`, `classes`, `image` (side in pixels; 0 is the model's
    own) and `channels`.

    Raises:
        PlacetoError: an unknown model or option.
    """
    import keras

    models = _models()
    if source.target not in models:
        raise PlacetoError(
            f"{source.text}: keras.applications has no model {source.target!r}; "
            f"models: {', '.join(sorted(models))}"
        )
    options = take_options(source, _OPTIONS)
    build = models[source.target]
    arguments: dict[str, Any] = {"weights": None, "classes": options["classes"]}
    if options["image"]:
        side = options["image"]
        arguments["input_shape"] = (side, side, options["channels"])
    elif options["channels"] != 3:
        raise PlacetoError(f"{source.text}: channels needs image, such as image=224")
    try:
        model = build(**arguments)
        if None in model.inputs[0].shape[1:]:
            keras.backend.clear_session()
            keras.utils.set_random_seed(0)
            model = build(**arguments, input_shape=(_SIDE, _SIDE, 3))
    except ValueError as error:
        line = str(error).strip().splitlines()[0]
        raise PlacetoError(f"{source.text}: Keras cannot build the model: {line}") from error
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", source.target).lower()
    return keras_step(model, name, options)


def _models() -> dict[str, Any]:
    import keras

    return {
        name: value
        for name, value in vars(keras.applications).items()
        if inspect.isfunction(value) and "classes" in inspect.signature(value).parameters
    }
