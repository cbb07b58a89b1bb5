"""The models by name; the convolutional networks of the papers, as Keras has them."""

from collections.abc import Callable
from typing import Any

import keras

from placeto.support.errors import PlacetoError
from placeto.zoo.enas_cnn import enas_cnn
from placeto.zoo.enas_rnn import enas_rnn
from placeto.zoo.nmt import nmt
from placeto.zoo.rnnlm import rnnlm
from placeto.zoo.training import sizes_checked
from placeto.zoo.transformer import transformer


@sizes_checked
def inception_v3(classes: int = 1000) -> Any:
    """The `keras.Model` of Szegedy et al. 2015, arXiv:1512.00567, for 299 x 299 images."""
    return keras.applications.InceptionV3(weights=None, classes=classes)


@sizes_checked
def resnet50(classes: int = 1000) -> Any:
    """The `keras.Model` of He et al. 2015, arXiv:1512.03385, 50 layers, for 224 x 224 images."""
    return keras.applications.ResNet50(weights=None, classes=classes)


@sizes_checked
def nasnet(size: str = "mobile", classes: int = 1000) -> Any:
    """The `keras.Model` of NASNet-A, Zoph et al. 2017, arXiv:1707.07012.

    Its size is `mobile` (4 @ 1056, for 224 x 224 images) or `large` (6 @ 4032, for 331 x 331).

    Raises:
        PlacetoError: another size.
    """
    sizes = {"mobile": keras.applications.NASNetMobile, "large": keras.applications.NASNetLarge}
    if size not in sizes:
        raise PlacetoError(f"nasnet: size={size} is unknown; sizes: {', '.join(sizes)}")
    return sizes[size](weights=None, classes=classes)


# Functions that return a training step, a ConcreteFunction.
STEPS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (enas_cnn, enas_rnn, nmt, rnnlm, transformer)
}
# Functions that return a keras.Model with random weights, to be trained on a batch.
KERAS_MODELS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (inception_v3, nasnet, resnet50)
}
