"""A SavedModel directory: one of its signatures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from placeto.extraction.source import Source, take_options
from placeto.extraction.tracing import training_step
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from placeto.extraction.step import TrainingStep

_DEFAULT = "serving_default"


def load(source: Source) -> TrainingStep:
    """The step that a signature of a SavedModel computes.

    Options: `signature` (default `serving_default`, or the only one) and `batch`, for inputs whose
    first dimension is unknown.

    Raises:
        PlacetoError: not a SavedModel, or no such signature.
    """
    import tensorflow as tf

    options = take_options(source, {"signature": "", "batch": 0})
    path = Path(source.target)
    try:
        model = tf.saved_model.load(str(path))
    except (OSError, ValueError, tf.errors.OpError) as error:
        line = str(error).strip().splitlines()[0]
        raise PlacetoError(f"{path}: not a SavedModel: {line}") from error
    signatures = getattr(model, "signatures", {})
    wanted = options["signature"] or _DEFAULT
    if not options["signature"] and len(signatures) == 1:
        wanted = next(iter(signatures))
    if wanted not in signatures:
        raise PlacetoError(
            f"{source.text}: no signature {wanted!r}; "
            f"signatures: {', '.join(sorted(signatures)) or 'none'}"
        )
    step = training_step(signatures[wanted], path.resolve().name)
    return replace(step, batch=options["batch"] or None)
