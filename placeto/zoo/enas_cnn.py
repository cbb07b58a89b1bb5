"""Convolutional networks of cells that ENAS could sample."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError
from placeto.zoo.cells import loose_ends, sampled_cell
from placeto.zoo.convolutions import Layers
from placeto.zoo.optimizers import Optimizer
from placeto.zoo.training import check_sizes, training_function, uniform_variables

if TYPE_CHECKING:
    from collections.abc import Callable

    from placeto.zoo.cells import Cell

_CHANNELS = 3


def enas_cnn(
    seed: int = 0,
    cells: int = 8,
    nodes: int = 5,
    filters: int = 36,
    batch: int = 128,
    image: int = 32,
    classes: int = 10,
    optimizer: str = "sgd",
    learning_rate: float = 0.05,
    clip: float = 5.0,
) -> Any:
    """The training step of a network of convolutional cells, one normal and one reduction cell.

    The cells are drawn as by `cells.sampled_cell`. A 3x3 convolution comes first, then `cells`
    cells, of which those behind a third and two thirds of them are reduction cells: they halve
    the image and double the filters; then the mean over the image and a softmax. The ops of a part
    are named after it: `stem`, `cell_3/input_0`, `cell_3/node_2/left`, `cell_3/output`, `head`,
    `update/cell_3/node_2/left/0`; gradients stand in the same scopes under `gradient_tape`.

    Pham et al. 2018, arXiv:1802.03268, section 2.4: for CIFAR-10, with five nodes in a cell, 36
    filters, gradients clipped to a norm of 5; without auxiliary head, dropped paths, momentum and
    moving averages.

    Args:
        seed: of the cells; the same seed gives the same ones.
        cells: how many, reduction cells included, from 3.
        nodes: nodes of a cell.
        filters: channels of a node's output before the first reduction.
        batch: images in a batch.
        image: height and width of an image, a multiple of 4.
        classes: what there is to tell apart.
        optimizer: `sgd` or `adam`.
        learning_rate: step size.
        clip: largest global norm of the gradients; 0 for no limit.

    Returns:
        A ConcreteFunction of `images` (batch, image, image, 3) and `labels` (batch,), which
        returns the mean cross-entropy of an image.

    Raises:
        PlacetoError: a size below 1, fewer than 3 cells, an image that cannot be halved twice, odd
            filters, an unknown optimizer.
    """
    import tensorflow as tf

    check_sizes(
        "enas_cnn",
        cells=cells,
        nodes=nodes,
        filters=filters,
        batch=batch,
        image=image,
        classes=classes,
    )
    if cells < 3:
        raise PlacetoError(f"enas_cnn: cells={cells} must be at least 3, two for reduction")
    if image % 4:
        raise PlacetoError(f"enas_cnn: image={image} must be a multiple of 4, to be halved twice")
    if filters % 2:
        raise PlacetoError(f"enas_cnn: filters={filters} must be even")
    rng = random.Random(seed)
    normal, reduction = sampled_cell(nodes, rng), sampled_cell(nodes, rng)

    def logits(layers: Layers, images: Any) -> Any:
        with layers.scope("stem"):
            before = last = layers.normalized(layers.convolved(images, 3, _CHANNELS * filters))
        width = filters
        for number in range(cells):
            reduces = number in (cells // 3, 2 * cells // 3)
            width *= 2 if reduces else 1
            cell = reduction if reduces else normal
            output = _cell(layers, f"cell_{number}", cell, (before, last), width, reduces)
            before, last = last, output
        with layers.scope("head"):
            return layers.dense(tf.reduce_mean(tf.nn.relu(last), axis=(1, 2)), classes)

    images = tf.TensorSpec((batch, image, image, _CHANNELS), tf.float32, "images")
    variables = uniform_variables(_shapes(logits, images), 0.1)

    def loss(images: Any, labels: Any) -> Any:
        guesses = logits(Layers(lambda name, shape: variables[name]), images)
        with tf.name_scope("head/"):
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, guesses))

    return training_function(
        loss,
        variables,
        [images, tf.TensorSpec((batch,), tf.int32, "labels")],
        Optimizer(optimizer, learning_rate, variables),
        clip,
    )


def _shapes(network: Callable[[Layers, Any], Any], images: Any) -> dict[str, tuple[int, ...]]:
    """The variables that a network asks for, found by tracing it with zeros in their place."""
    import tensorflow as tf

    shapes: dict[str, tuple[int, ...]] = {}

    def zeros(name: str, shape: tuple[int, ...]) -> Any:
        shapes[name] = shape
        return tf.zeros(shape)

    traced = tf.function(lambda each: network(Layers(zeros), each), autograph=False)
    traced.get_concrete_function(images)
    return shapes


def _cell(
    layers: Layers, name: str, cell: Cell, inputs: tuple[Any, Any], width: int, reduces: bool
) -> Any:
    import tensorflow as tf

    outputs = []
    # The cell before the last one may have a larger image.
    small = inputs[1].shape[1]
    for number, value in enumerate(inputs):
        with layers.scope(f"{name}/input_{number}"):
            outputs.append(layers.fitted(value, width, small))
    final = small // 2 if reduces else small
    for number, node in enumerate(cell):
        parts = []
        for side, source, operation in zip(
            ("left", "right"), node.inputs, node.operations, strict=True
        ):
            with layers.scope(f"{name}/node_{number}/{side}"):
                parts.append(layers.operated(operation, outputs[source], width, final))
        with tf.name_scope(f"{name}/node_{number}/"):
            outputs.append(tf.add(*parts, name="sum"))
    ends = []
    for end in loose_ends(cell):
        with layers.scope(f"{name}/output/from_{end}"):
            ends.append(layers.fitted(outputs[end], width, final))
    with tf.name_scope(f"{name}/output/"):
        return tf.concat(ends, axis=3) if len(ends) > 1 else ends[0]
