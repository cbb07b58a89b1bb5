"""Arguments of one command from the command line, errors in one line."""

import contextlib
import io
import re
from collections.abc import Sequence
from typing import TypeVar

import tyro

from placeto.support.errors import PlacetoError

Arguments = TypeVar("Arguments")

_CONFIG = (
    tyro.conf.FlagCreatePairsOff,
    tyro.conf.PositionalMetavarFromFieldName,
    tyro.conf.HelptextFromCommentsOff,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = " │─╯"


def parse(kind: type[Arguments], argv: Sequence[str], prog: str) -> Arguments | None:
    """Reads the arguments of a command that messages call `prog`; None after printing its help.

    Raises:
        PlacetoError: an argument is missing, unknown, or of the wrong type.
    """
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(kind, args=list(argv), prog=prog, config=_CONFIG)
    except SystemExit as stop:
        if not stop.code:
            return None
    raise PlacetoError(f"{_one_line(complaint.getvalue())}; see {prog} --help")


def _one_line(box: str) -> str:
    """What a box of tyro says, without its frame and its repetition of the help text.

    A box has a title, then sections between rules: the error, then hints. Help texts are indented
    by eight. The frame is of blanks where stderr has no others.
    """
    rows = [_COLOUR.sub("", row) for row in box.splitlines()]
    width = max(map(len, rows), default=0) - 4
    sections = [""]
    for row in rows[1:]:
        text = row[2:].rstrip(_FRAME)
        if not text.strip("─- "):
            sections.append("")
        elif not text.startswith(" " * 8):
            # A row that fills the box was cut inside a word.
            sections[-1] += text.strip() if len(text) == width else f"{text.strip()} "
    error, *hints = (section.strip().rstrip(".") for section in sections if section)
    error = error.removeprefix("Error parsing ")
    kept = [hint for hint in hints if hint.startswith("Perhaps you meant")]
    return "; ".join(text[:1].lower() + text[1:] for text in (error, *kept))
