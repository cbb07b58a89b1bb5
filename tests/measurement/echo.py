"""A child that answers with what it is sent, or ends as it is told."""

import os
import sys

from placeto.measurement.parent import Parent

if __name__ == "__main__":
    parent = Parent(sys.argv[1:])
    while True:
        order = parent.receive()
        if "raise" in order:
            raise ValueError(order["raise"])
        if "exit" in order:
            sys.exit(order["exit"])
        if "signal" in order:
            os.kill(os.getpid(), order["signal"])
        parent.send(order, b"\x00\xff" if "data" in order else None)
