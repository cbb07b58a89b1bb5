"""Where a training step comes from, as the user writes it: `scheme:target?key=value&…`."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from placeto.support.errors import PlacetoError

FORMS = (
    "keras:MODEL?batch=32, zoo:MODEL, family:NAME?number=N, package.module:function or "
    "file.py:function, an ONNX file (.onnx), a GraphDef file (.pb, .pbtxt, also .gz), or a "
    "SavedModel directory"
)
Value = int | float | bool | str


@dataclass(frozen=True)
class Source:
    """A parsed source.

    Attributes:
        text: as it was written.
        scheme: what stands before the first colon, or "" for a path.
        target: a model, a function, or a path.
        options: key -> value.
    """

    text: str
    scheme: str
    target: str
    options: Mapping[str, Value]


def parse_source(text: str) -> Source:
    """Reads `scheme:target?key=value&key=value`.

    Raises:
        PlacetoError: no target, an option without a value, an option given twice.
    """
    place, mark, query = text.partition("?")
    scheme, colon, target = place.partition(":") if ":" in place else ("", "", place)
    if not target or (colon and not scheme):
        raise PlacetoError(f"source {text!r} names nothing; give {FORMS}")
    options: dict[str, Value] = {}
    for part in query.split("&") if mark and query else ():
        key, equals, value = part.partition("=")
        if not key or not equals or not value:
            raise PlacetoError(f"source {text!r}: option {part!r} is not of the form key=value")
        if key in options:
            raise PlacetoError(f"source {text!r}: option {key!r} stands twice")
        options[key] = _value(value)
    return Source(text, scheme, target, options)


def take_options(
    source: Source, defaults: Mapping[str, Any], own: Collection[str] = ()
) -> dict[str, Any]:
    """The source's options over their defaults.

    An option is of its default's type; None allows any. Numbers must not be negative but for
    options of the user's `own` function.

    Raises:
        PlacetoError: an unknown option, a value of another type, or a negative number.
    """
    taken = dict(defaults)
    for key, value in source.options.items():
        if key not in defaults:
            raise unknown(source.text, f"unknown option {key!r}", "options", sorted(defaults))
        taken[key] = value if defaults[key] is None else _typed(source, key, defaults[key])
        if key not in own and isinstance(value, int | float) and value < 0:
            raise PlacetoError(f"{source.text}: {key}={value} must not be negative")
    return taken


def unknown(where: str, said: str, plural: str, names: Iterable[str]) -> PlacetoError:
    """The error that something is not among what is known."""
    return PlacetoError(f"{where}: {said}; {plural}: {', '.join(names) or 'none'}")


def _typed(source: Source, key: str, default: Any) -> Value:
    value, wanted = source.options[key], type(default)
    if wanted is str or (wanted is float and type(value) is int):
        return wanted(value)  # type: ignore[no-any-return]
    if type(value) is not wanted:
        kinds = {int: "a whole number", float: "a number", bool: "true or false"}
        kind = kinds.get(wanted, f"a {wanted.__name__}, which a source cannot give")
        raise PlacetoError(f"{source.text}: {key}={value} is not {kind}, such as {default}")
    return value


def _value(text: str) -> Value:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        with contextlib.suppress(ValueError):
            return convert(text)
    return text
