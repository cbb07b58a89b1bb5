"""Importing TensorFlow without its start-up messages."""

import contextlib
import os
import sys
from collections.abc import Iterator

from placeto.support.errors import PlacetoError


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
        with _no_stderr():
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


@contextlib.contextmanager
def _no_stderr() -> Iterator[None]:
    # The C++ runtime writes to the file descriptor before any log level is read.
    sys.stderr.flush()
    saved = os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(sink)
