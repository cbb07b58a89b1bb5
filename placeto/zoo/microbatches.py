"""Steps of several microbatches: forward and backward for each, gradients added up, one update.

What is traced notes in its graph where a section begins, so that ops can be named after their
microbatches when the graph is there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.support.errors import PlacetoError

BY_MICROBATCH = "batch normalization is by microbatch: the update is not that of the whole batch"
_SECTIONS = "placeto/sections"


@dataclass(frozen=True)
class Section:
    """Ops that were traced one after the other, up to the next section.

    Attributes:
        begin: how many ops there were before.
        microbatch: whose they are; -1 for all.
        phase: see `ComputationGraph`.
        is_copied: whether each microbatch has such a section, of the same ops.
    """

    begin: int
    microbatch: int
    phase: int
    is_copied: bool = True


def checked(where: str, batch: int, microbatches: int) -> int:
    """How many examples a microbatch has.

    Raises:
        PlacetoError: the batch cannot be divided into so many equal parts.
    """
    if microbatches < 1 or batch % microbatches:
        raise PlacetoError(
            f"{where}: microbatches={microbatches} does not divide batch={batch}; give a divisor"
        )
    return batch // microbatches


def differentiated(
    losses: Sequence[Callable[[], Any]], variables: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """The mean of losses, one a microbatch, and its gradients; called while a step is traced.

    The gradients of one microbatch after the other are added up, so that no more than one sum is
    kept. What is traced afterwards is the update.

    Args:
        losses: each computes the mean loss of a microbatch.
        variables: what to differentiate by.
    """
    import tensorflow as tf

    count = len(losses)
    if count == 1:
        with tf.GradientTape() as tape:
            value = losses[0]()
        return value, tape.gradient(value, variables)
    values: list[Any] = []
    sums: list[Any] = []
    sparse: dict[int, list[Any]] = {}
    for number, loss in enumerate(losses):
        _begin(number, FORWARD)
        with tf.GradientTape() as tape:
            value = loss() / count
        _begin(number, BACKWARD)
        gradients = tape.gradient(value, variables)
        values.append(value)
        _begin(number, BACKWARD, is_copied=False)
        for index, gradient in enumerate(gradients):
            if isinstance(gradient, tf.IndexedSlices):
                sparse.setdefault(index, []).append(gradient)
        with tf.name_scope("accumulate/"):
            sums = [
                gradient if number == 0 or gradient is None or index in sparse
                else sums[index] + gradient
                for index, gradient in enumerate(gradients)
            ]  # fmt: skip
    _begin(-1, UPDATE)
    with tf.name_scope("accumulate/"):
        for index, slices in sparse.items():
            parts = [[each.values for each in slices], [each.indices for each in slices]]
            joined = [tf.concat(part, 0) for part in parts]
            sums[index] = tf.IndexedSlices(*joined, slices[0].dense_shape)
        return tf.add_n(values), sums


def _begin(microbatch: int, phase: int, *, is_copied: bool = True) -> None:
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    section = Section(len(graph.get_operations()), microbatch, phase, is_copied)
    graph.add_to_collection(_SECTIONS, section)


def sections_of(graph: Any) -> list[Section]:
    """The sections of a traced graph, in their order; none of a step of one microbatch."""
    return list(graph.get_collection(_SECTIONS))
