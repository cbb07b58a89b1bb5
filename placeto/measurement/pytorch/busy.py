"""A process that trains a module, again and again, while ops are timed in another."""

import sys

from placeto.extraction.source import parse_source
from placeto.measurement.parent import Parent
from placeto.support.errors import PlacetoError


def main() -> None:
    """Says when it has begun, and goes on until the parent ends it."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    from placeto.measurement.pytorch.op_times import keep_busy

    try:
        keep_busy(parse_source(settings["source"]), settings["threads"], lambda: parent.send({}))
    except PlacetoError as error:
        parent.send({"error": str(error)})


if __name__ == "__main__":
    main()
