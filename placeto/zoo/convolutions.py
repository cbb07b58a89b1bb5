"""What convolutional cells are made of: convolutions, normalization, pooling, reduction."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EPSILON = 1e-5


class Layers:
    """Layers whose variables are named after the scope that they are made in.

    Args:
        variable: called with a variable's name and shape, returns the variable or its value.
    """

    def __init__(self, variable: Callable[[str, tuple[int, ...]], Any]) -> None:
        self._find = variable
        self._scope = ""
        self._made = 0

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names the ops and variables made in the block after a part of the network."""
        import tensorflow as tf

        self._scope, self._made = name, 0
        with tf.name_scope(f"{name}/"):
            yield

    def convolved(self, images: Any, size: int, filters: int) -> Any:
        """A convolution of `size` x `size` without bias, on images of (batch, height, width, c)."""
        import tensorflow as tf

        kernel = self._variable("kernel", (size, size, images.shape[3], filters))
        return tf.nn.conv2d(images, kernel, 1, "SAME")

    def normalized(self, images: Any) -> Any:
        """Batch normalization by the batch's moments, Ioffe and Szegedy 2015, arXiv:1502.03167."""
        import tensorflow as tf

        channels = images.shape[3]
        return tf.raw_ops.FusedBatchNormV2(
            x=images,
            scale=self._variable("scale", (channels,)),
            offset=self._variable("offset", (channels,)),
            mean=tf.zeros((0,)),
            variance=tf.zeros((0,)),
            epsilon=_EPSILON,
            is_training=True,
        ).y

    def dense(self, rows: Any, units: int) -> Any:
        """A dense layer with bias, on rows of (batch, width)."""
        import tensorflow as tf

        kernel = self._variable("kernel", (rows.shape[1], units))
        return tf.nn.bias_add(tf.matmul(rows, kernel), self._variable("bias", (units,)))

    def fitted(self, images: Any, filters: int, height: int) -> Any:
        """The images, brought to so many channels and to that height if they are not of it."""
        import tensorflow as tf

        if images.shape[1] > height:
            return self._reduced(images, filters)
        if images.shape[3] == filters:
            return images
        return self.normalized(self.convolved(tf.nn.relu(images), 1, filters))

    def operated(self, operation: str, images: Any, filters: int, height: int) -> Any:
        """An operation of a cell.

        Args:
            operation: of `cells.OPERATIONS`.
            images: (batch, height or twice of it, the same, filters).
            filters: channels in and out.
            height: of the output; where the images are larger, every second pixel is left out.
        """
        import tensorflow as tf

        if operation == "identity":
            return self.fitted(images, filters, height)
        stride = images.shape[1] // height
        if operation == "average_pool":
            return tf.nn.avg_pool2d(images, 3, stride, "SAME")
        if operation == "max_pool":
            return tf.nn.max_pool2d(images, 3, stride, "SAME")
        size = {"separable_3x3": 3, "separable_5x5": 5}[operation]
        # Twice, as in NASNet, Zoph et al. 2017, arXiv:1707.07012, which has these cells' layout.
        first = self._separable(images, size, filters, stride)
        return self._separable(first, size, filters, 1)

    def _separable(self, images: Any, size: int, filters: int, stride: int) -> Any:
        import tensorflow as tf

        channels = images.shape[3]
        convolved = tf.nn.separable_conv2d(
            tf.nn.relu(images),
            self._variable("depthwise", (size, size, channels, 1)),
            self._variable("pointwise", (1, 1, channels, filters)),
            (1, stride, stride, 1),
            "SAME",
        )
        return self.normalized(convolved)

    def _reduced(self, images: Any, filters: int) -> Any:
        """Half the height and width: even pixels and odd ones, half of the filters each."""
        import tensorflow as tf

        rectified = tf.nn.relu(images)
        halves = [
            self.convolved(pixels, 1, filters // 2)
            for pixels in (rectified[:, ::2, ::2], rectified[:, 1::2, 1::2])
        ]
        return self.normalized(tf.concat(halves, axis=3))

    def _variable(self, kind: str, shape: tuple[int, ...]) -> Any:
        name = f"{self._scope}/{self._made}/{kind}"
        self._made += 1
        return self._find(name, shape)
