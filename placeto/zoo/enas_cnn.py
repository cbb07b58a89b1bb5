"""Convolutional networks of cells that ENAS could sample."""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from placeto.support.errors import PlacetoError
from placeto.zoo.cells import Cell, loose_ends, sampled_cell
from placeto.zoo.training import Shapes, sizes_checked, training_function, uniform_variables

_CHANNELS = 3
_EPSILON = 1e-5


@sizes_checked
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
    microbatches: int = 1,
) -> Any:
    """The training step of a network of convolutional cells, one normal and one reduction cell.

    The cells, of `nodes` nodes, are drawn as by `cells.sampled_cell`; the same `seed` gives the
    same ones. A 3x3 convolution comes first, then `cells` cells, of which those behind a third and
    two thirds of them are reduction cells: they halve the image and double the filters, of which a
    node has `filters` before; then the mean over the image and a softmax. The ops of a part
    are named after it: `stem`, `cell_3/input_0`, `cell_3/node_2/left`, `cell_3/output`, `head`,
    `update/cell_3/node_2/left/0`; gradients stand in the same scopes under `gradient_tape`.

    Pham et al. 2018, arXiv:1802.03268, section 2.4: for CIFAR-10, with five nodes in a cell, 36
    filters, gradients clipped to a norm of 5; without auxiliary head, dropped paths, momentum and
    moving averages.

    Returns:
        A ConcreteFunction of `images` (batch, image, image, 3) and `labels` (batch,), which
        returns the mean cross-entropy of an image.

    Raises:
        PlacetoError: a size below 1, fewer than 3 cells, an image that cannot be halved twice, odd
            filters, an unknown optimizer; see `training_function`.
    """
    if cells < 3:
        raise PlacetoError(f"enas_cnn: cells={cells} must be at least 3, two for reduction")
    if image % 4:
        raise PlacetoError(f"enas_cnn: image={image} must be a multiple of 4, to be halved twice")
    if filters % 2:
        raise PlacetoError(f"enas_cnn: filters={filters} must be even")
    rng = random.Random(seed)
    normal, reduction = sampled_cell(nodes, rng), sampled_cell(nodes, rng)

    def logits(layers: _Layers, images: Any) -> Any:
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
        guesses = logits(_Layers(lambda name, shape: variables[name]), images)
        with tf.name_scope("head/"):
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, guesses))

    inputs = [images, tf.TensorSpec((batch,), tf.int32, "labels")]
    return training_function(loss, variables, inputs, optimizer, learning_rate, clip, microbatches)


class _Layers:
    """Layers whose variables are named after the scope that they are made in.

    Images are (batch, height, width, channels).

    Args:
        variable: called with a variable's name and shape, returns the variable or its value.
    """

    def __init__(self, variable: Callable[[str, tuple[int, ...]], Any]) -> None:
        self._find = variable
        self._scope = ""
        self._made = 0

    def _variable(self, kind: str, *shape: int) -> Any:
        name = f"{self._scope}/{self._made}/{kind}"
        self._made += 1
        return self._find(name, shape)

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names the ops and variables made in the block after a part of the network."""
        self._scope, self._made = name, 0
        with tf.name_scope(f"{name}/"):
            yield

    def convolved(self, images: Any, size: int, filters: int) -> Any:
        """A convolution of `size` x `size` without bias."""
        kernel = self._variable("kernel", size, size, images.shape[3], filters)
        return tf.nn.conv2d(images, kernel, 1, "SAME")

    def normalized(self, images: Any) -> Any:
        """Batch normalization by the batch's moments, Ioffe and Szegedy 2015, arXiv:1502.03167."""
        channels = images.shape[3]
        return tf.raw_ops.FusedBatchNormV2(
            x=images,
            scale=self._variable("scale", channels),
            offset=self._variable("offset", channels),
            mean=tf.zeros((0,)),
            variance=tf.zeros((0,)),
            epsilon=_EPSILON,
            is_training=True,
        ).y

    def dense(self, rows: Any, units: int) -> Any:
        """A dense layer with bias, on rows of (batch, width)."""
        kernel = self._variable("kernel", rows.shape[1], units)
        return tf.nn.bias_add(tf.matmul(rows, kernel), self._variable("bias", units))

    def fitted(self, images: Any, filters: int, height: int) -> Any:
        """The images, brought to so many channels and to that height if they are not of it.

        To half the height and width by even pixels and odd ones, half of the filters each.
        """
        if images.shape[1] == height and images.shape[3] == filters:
            return images
        rectified = tf.nn.relu(images)
        if images.shape[1] == height:
            return self.normalized(self.convolved(rectified, 1, filters))
        halves = [
            self.convolved(pixels, 1, filters // 2)
            for pixels in (rectified[:, ::2, ::2], rectified[:, 1::2, 1::2])
        ]
        return self.normalized(tf.concat(halves, axis=3))

    def operated(self, operation: str, images: Any, filters: int, height: int) -> Any:
        """An operation of `cells.OPERATIONS`, on images of as many channels as come out.

        Where the images are twice as high and wide as `height`, every second pixel is left out.
        """
        if operation == "identity":
            return self.fitted(images, filters, height)
        stride = images.shape[1] // height
        if operation == "average_pool":
            return tf.nn.avg_pool2d(images, 3, stride, "SAME")
        if operation == "max_pool":
            return tf.nn.max_pool2d(images, 3, stride, "SAME")
        size = {"separable_3x3": 3, "separable_5x5": 5}[operation]
        # Twice, as in NASNet, Zoph et al. 2017, arXiv:1707.07012, which has these cells' layout.
        for step in (stride, 1):
            channels = images.shape[3]
            convolved = tf.nn.separable_conv2d(
                tf.nn.relu(images),
                self._variable("depthwise", size, size, channels, 1),
                self._variable("pointwise", 1, 1, channels, filters),
                (1, step, step, 1),
                "SAME",
            )
            images = self.normalized(convolved)
        return images


def _shapes(network: Callable[[_Layers, Any], Any], images: Any) -> Shapes:
    """The variables that a network asks for, found by tracing it with zeros in their place."""
    shapes: Shapes = {}

    def zeros(name: str, shape: tuple[int, ...]) -> Any:
        shapes[name] = shape
        return tf.zeros(shape)

    traced = tf.function(lambda each: network(_Layers(zeros), each), autograph=False)
    traced.get_concrete_function(images)
    return shapes


def _cell(
    layers: _Layers, name: str, cell: Cell, inputs: tuple[Any, Any], width: int, reduces: bool
) -> Any:
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
