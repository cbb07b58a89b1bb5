"""Importing TensorFlow without its start-up messages."""

import os
import sys

from placeto.support.errors import PlacetoError
from placeto.support.streams import redirected


def import_tensorflow() -> None:
    """Imports TensorFlow and Keras without a word on stdout or stderr.

    Raises:
        PlacetoError: TensorFlow is not installed.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    try:
        # The C++ runtime writes to the file descriptor before any log level is read.
        with redirected(2):
            import keras
            import tensorflow  # noqa: F401
    except ModuleNotFoundError as error:
        raise PlacetoError(
            f"extraction needs TensorFlow ({error}); install placeto[tensorflow]"
        ) from error
    if keras.backend.backend() != "tensorflow":
        raise PlacetoError(
            f"Keras runs on {keras.backend.backend()!r}; extraction needs KERAS_BACKEND=tensorflow"
        )
