"""A process that trains a module, again and again, while ops are timed in another."""

import sys

from placeto.extraction.source import parse_source
from placeto.measurement.parent import Parent
from placeto.support.errors import PlacetoError


def main() -> None:
    """Rests and goes on as the parent says, until it is ended."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    from placeto.measurement.pytorch.op_times import keep_busy

    def before(number: int) -> None:
        if number > 1 and not parent.asks():
            return
        if number > 1:
            parent.receive()
        if number > 0:  # the first microbatch warms up
            parent.send({})
            parent.receive()

    try:
        keep_busy(parse_source(settings["source"]), settings["threads"], before)
    except PlacetoError as error:
        parent.send({"error": str(error)})


if __name__ == "__main__":
    main()
