"""The convolutional networks of the papers, as Keras has them, with random weights."""

from __future__ import annotations

from typing import Any

from placeto.support.errors import PlacetoError
from placeto.zoo.training import check_sizes


def inception_v3(classes: int = 1000) -> Any:
    """The `keras.Model` of Szegedy et al. 2015, arXiv:1512.00567, for 299 x 299 images."""
    check_sizes("inception_v3", classes=classes)
    import keras

    return keras.applications.InceptionV3(weights=None, classes=classes)


def resnet50(classes: int = 1000) -> Any:
    """The `keras.Model` of He et al. 2015, arXiv:1512.03385, 50 layers, for 224 x 224 images."""
    check_sizes("resnet50", classes=classes)
    import keras

    return keras.applications.ResNet50(weights=None, classes=classes)


def nasnet(size: str = "mobile", classes: int = 1000) -> Any:
    """The `keras.Model` of NASNet-A, Zoph et al. 2017, arXiv:1707.07012.

    Args:
        size: `mobile` (4 @ 1056, for 224 x 224 images) or `large` (6 @ 4032, for 331 x 331).
        classes: what there is to tell apart.

    Raises:
        PlacetoError: another size.
    """
    check_sizes("nasnet", classes=classes)
    import keras

    sizes = {"mobile": keras.applications.NASNetMobile, "large": keras.applications.NASNetLarge}
    if size not in sizes:
        raise PlacetoError(f"nasnet: size={size} is unknown; sizes: {', '.join(sizes)}")
    return sizes[size](weights=None, classes=classes)
