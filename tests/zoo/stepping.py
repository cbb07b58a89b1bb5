"""Running a model's training step as it was traced, before anything is extracted."""

from collections.abc import Callable
from typing import Any

import numpy as np

from placeto.extraction.tracing import variables_kept

Arrays = dict[str, np.ndarray]


def stepped(
    build: Callable[[], Any], inputs: Arrays, steps: int = 1
) -> tuple[list[float], Arrays, Arrays]:
    """The loss at each of some steps on one batch, and the variables before and after.

    Args:
        build: makes the training step, a ConcreteFunction.
        inputs: name -> whole numbers, in the order of the step's inputs.
        steps: how often.

    Returns:
        (steps,) losses, each before its update; variables by name at first; and at last.
    """
    import tensorflow as tf

    with variables_kept():
        step = build()
        names = [spec.name for spec in step.structured_input_signature[0]]
        assert names == list(inputs)
        first = values(step)
        tensors = [tf.constant(value, tf.int32) for value in inputs.values()]
        losses = [float(step(*tensors)) for _ in range(steps)]
        return losses, first, values(step)


def values(step: Any) -> Arrays:
    """The variables of a traced step by name."""
    return {each.name.removesuffix(":0"): each.numpy() for each in step.graph.variables}
