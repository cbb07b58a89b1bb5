"""`zoo:MODEL?…`: the models of `placeto.zoo` by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from placeto.extraction.keras_step import STEP_OPTIONS, keras_step
from placeto.extraction.source import Source, take_options
from placeto.extraction.tracing import training_step
from placeto.support.errors import PlacetoError
from placeto.zoo.models import KERAS_MODELS, STEPS

if TYPE_CHECKING:
    from placeto.extraction.step import TrainingStep


def load(source: Source) -> TrainingStep:
    """The training step of a model of the zoo.

    Options: the parameters of the model's function, and those of `keras_step` for a Keras model.

    Raises:
        PlacetoError: an unknown model or option.
    """
    models = {**STEPS, **KERAS_MODELS}
    name = source.target
    if name not in models:
        raise PlacetoError(
            f"{source.text}: the zoo has no model {name!r}; models: {', '.join(sorted(models))}"
        )
    build = models[name]
    own = {each.name: each.default for each in inspect.signature(build).parameters.values()}
    if name in STEPS:
        return training_step(build(**take_options(source, own)), name)
    options = take_options(source, {**STEP_OPTIONS, **own})
    model = build(**{key: options[key] for key in own})
    return keras_step(model, name, {key: options[key] for key in STEP_OPTIONS})
