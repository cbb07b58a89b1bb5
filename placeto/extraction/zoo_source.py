"""`zoo:MODEL?…`: the models of `placeto.zoo` by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from placeto.errors import PlacetoError
from placeto.extraction.source import Source, did_you_mean, take_options
from placeto.extraction.tracing import training_step
from placeto.zoo import MODELS

if TYPE_CHECKING:
    from placeto.extraction.step import TrainingStep


def load(source: Source) -> TrainingStep:
    """The training step of a model of the zoo; its options are the function's parameters.

    Raises:
        PlacetoError: an unknown model or option.
    """
    if source.target not in MODELS:
        raise PlacetoError(
            f"{source.text}: the zoo has no model {source.target!r}"
            f"{did_you_mean(source.target, MODELS)}; models: {', '.join(sorted(MODELS))}"
        )
    build = MODELS[source.target]
    parameters = inspect.signature(build).parameters.values()
    options = take_options(source, {each.name: each.default for each in parameters})
    return training_step(build(**options), source.target)
