"""Documents: what files of JSON and YAML hold, said by types, and one line of what is wrong.

`where` is what a document is called in error messages.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes

T = TypeVar("T")

_KINDS = {
    "object": "an object",
    "array": "a list",
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}

Document = msgspec.Struct
"""An object of a document: its keys, with the types of their values.

A subclass with `forbid_unknown_fields=True` has no other keys."""


class Header(Document):
    """What every file of this package's own begins with: a kind of file, and a version of that."""

    format: str
    version: int


def from_value(value: Any, kind: type[T], where: str) -> T:
    """A value of what a reader of YAML or JSON returned, copied.

    Raises:
        PlacetoError: it is of another kind.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise PlacetoError(f"{where}: {_line(error, kind)}") from error
    except RecursionError as error:
        raise PlacetoError(f"{where}: nested too deeply") from error


def read_document(path: Path, kind: type[T], expected: str, version: int, where: str) -> T:
    """Reads a file of this package's own, JSON that is compressed or not.

    Its `format` must be the expected one, its version at most this one, and it must hold a `kind`.

    Raises:
        PlacetoError: it cannot be read, is not JSON, of another format, of a later version, or does
            not hold that.
    """
    data = read_bytes(path)
    check_format(_from_bytes(data, Header, where), expected, version, where)
    return _from_bytes(data, kind, where)


def check_format(document: Any, expected: str, version: int, where: str) -> None:
    """Checks the `format` and `version` fields that every placeto file starts with.

    Raises:
        PlacetoError: another format, or a version later than this program reads.
    """
    header = from_value(document, Header, where)
    if header.format != expected:
        raise PlacetoError(f"{where}: format is {header.format!r}, expected {expected!r}")
    if header.version < 1:
        raise PlacetoError(f"{where}: version is {header.version}, expected 1 or more")
    if header.version > version:
        raise PlacetoError(
            f"{where}: version {header.version} of {expected} is later than this placeto reads "
            f"({version}); install a later placeto"
        )


def _from_bytes(data: bytes, kind: type[T], where: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise PlacetoError(f"{where}: {_line(error, kind)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlacetoError(f"{where}: not valid JSON ({error}); was it cut off?") from error
    except RecursionError as error:
        raise PlacetoError(f"{where}: not valid JSON (nested too deeply)") from error


def _line(error: msgspec.ValidationError, kind: Any) -> str:
    """`devices[0].name: expected a string, found a whole number`."""
    said, _, at = str(error).partition(" - at ")
    at = at.replace("`", "")
    if wrong := re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", said):
        kinds = wrong[1].replace("int | float", "float").split(" | ")
        wanted = " or ".join(_KINDS.get(each, each) for each in kinds)
        said = f"expected {wanted}, found {_KINDS.get(wrong[2], wrong[2])}"
    elif unknown := re.fullmatch(r"Object contains unknown field `([^`]+)`", said):
        said = f"unknown key {unknown[1]!r}; known: {', '.join(_keys(kind, at))}"
    elif missing := re.fullmatch(r"Object missing required field `([^`]+)`", said):
        said = f"key {missing[1]!r} is missing"
    else:
        said = re.sub("`([^`]+)`", lambda each: _KINDS.get(each[1], each[1]), said)
        said = said[0].lower() + said[1:]
    at = at.removeprefix("$").removeprefix(".").replace("in $.", "of ")
    return f"{at}: {said}" if at else said


def _keys(kind: Any, at: str) -> list[str]:
    """The keys that an object has, by its type and its place in a document, such as `$.ops[0]`."""
    found: Any = inspect.type_info(kind)
    for step in re.findall(r"[A-Za-z_]\w*|\[", at):
        if isinstance(found, inspect.UnionType):
            found = next(each for each in found.types if not isinstance(each, inspect.NoneType))
        if step == "[":
            found = found.item_type
        elif isinstance(found, inspect.StructType):
            found = next(each.type for each in found.fields if each.encode_name == step)
    return [each.encode_name for each in found.fields]
