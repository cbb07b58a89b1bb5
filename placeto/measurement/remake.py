"""Extracts a GraphDef again: `python -m placeto.measurement.remake SOURCE 0|1 SHA256 PATH`."""

import hashlib
import sys
from collections.abc import Sequence

from placeto.extraction import extract
from placeto.support.errors import PlacetoError
from placeto.support.files import write_bytes


def main(arguments: Sequence[str]) -> int:
    """Writes the GraphDef if it is the wanted one; else the status is 2, after a line on stderr."""
    source, optimize, sha256, path = arguments
    try:
        extraction = extract(source, optimize=optimize == "1")
        if extraction.graph_def is None:
            raise PlacetoError(f"{source} gives no GraphDef: it is not of TensorFlow")
        data = extraction.graph_def.SerializeToString(deterministic=True)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise PlacetoError(
                f"{source} gives another GraphDef here, with TensorFlow "
                f"{extraction.graph.meta['versions']['tensorflow']}; extract the graph again"
            )
        write_bytes(path, data)
    except PlacetoError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
