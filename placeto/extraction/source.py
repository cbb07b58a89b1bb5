"""Where a training step comes from, as the user writes it: `scheme:target?key=value&…`."""

from collections.abc import Collection, Mapping
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
    scheme, colon, target = place.partition(":")
    if not colon:
        scheme, target = "", place
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

    Args:
        source: a parsed source.
        defaults: option -> default; its type is the option's, None allows any.
        own: options of the user's own function, whose numbers may be negative.

    Raises:
        PlacetoError: an unknown option, a value of another type, or a negative number.
    """
    taken = dict(defaults)
    for key, value in source.options.items():
        if key not in defaults:
            raise PlacetoError(
                f"{source.text}: unknown option {key!r}; "
                f"options: {', '.join(sorted(defaults)) or 'none'}"
            )
        taken[key] = _typed(source, key, value, defaults[key])
        if key not in own and isinstance(value, int | float) and value < 0:
            raise PlacetoError(f"{source.text}: {key}={value} must not be negative")
    return taken


def _typed(source: Source, key: str, value: Value, default: Any) -> Value:
    if default is None:
        return value
    wanted = type(default)
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is str and not isinstance(value, str):
        return str(value)
    if type(value) is not wanted:
        kinds = {int: "a whole number", float: "a number", bool: "true or false"}
        kind = kinds.get(wanted, f"a {wanted.__name__}, which a source cannot give")
        raise PlacetoError(f"{source.text}: {key}={value} is not {kind}, such as {default}")
    return value


def _value(text: str) -> Value:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
