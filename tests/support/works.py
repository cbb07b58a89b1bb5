"""What workers do in the tests; Ray's processes import it from here."""

import os
import signal
from pathlib import Path

import numpy as np

from placeto import PlacetoError


def squarer(number):
    return lambda item: item * item


def mortal(number):
    """Squares, but dies of a path, the first time that it is seen."""

    def work(item):
        if not isinstance(item, Path):
            return item * item
        try:
            item.touch(exist_ok=False)
        except FileExistsError:
            return "survived"
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    return work


def strict(number):
    def work(item):
        if item == 0:
            raise PlacetoError("zero is refused")
        return 1 // (item - 1)

    return work


def numbered(number):
    return lambda item: (number, os.getpid())


def flags(number):
    return lambda array: (array.flags.writeable, array + np.float64(1))
