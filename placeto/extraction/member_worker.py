"""The process that extracts members of families: `python -m placeto.extraction.member_worker`.

It reads a JSON object with `source` and `path` from each line of stdin, and answers each with a
line on stdout: an empty object, or one with an `error`. It ends with its input.
"""

import json
import os
import sys

from placeto.extraction import extract
from placeto.support.errors import PlacetoError


def main() -> None:
    """Works until there is no more input."""
    # What TensorFlow prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        try:
            extract(request["source"]).save(request["path"])
        except PlacetoError as error:
            answer["error"] = str(error)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
