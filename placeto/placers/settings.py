"""Settings: what placers with a configuration may be told."""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from placeto.support.errors import PlacetoError

_NAMES = {bool: "true or false", int: "a whole number", float: "a finite number", NoneType: "none"}


@dataclass(frozen=True)
class Configurable:
    """The configuration of a placer.

    Attributes:
        default: a frozen dataclass, whose fields are bool, int, float, None or literal strings.
        fixed: fields that are no settings: the placer fills them in itself, or has no use for them.
    """

    default: Any
    fixed: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, object]:
        """Name and default of each setting."""
        names = [field.name for field in fields(self.default) if field.name not in self.fixed]
        return {name: getattr(self.default, name) for name in names}

    def configured(self, settings: Mapping[str, object]) -> Any:
        """The configuration with other settings.

        Raises:
            PlacetoError: no such setting, a value of another type, or one that makes no sense.
        """
        for name, value in settings.items():
            options = self._options(name)
            if not any(_is_a(value, option) for option in options):
                expected = " or ".join(_NAMES.get(option, option) for option in options)
                raise PlacetoError(f"{name} is {value!r}, expected {expected}")
        return replace(self.default, **settings)

    def read(self, name: str, text: str) -> object:
        """A setting's value from text: as its type writes it, else the text itself.

        Raises:
            PlacetoError: there is no such setting.
        """
        for option in self._options(name):
            if option is NoneType and text == "none":
                return None
            if option is bool and text in ("true", "false"):
                return text == "true"
            if option in (int, float):
                with contextlib.suppress(ValueError):
                    return option(text)
        return text

    def _options(self, name: str) -> list[Any]:
        """Types and strings that a setting's value is one of."""
        known = list(self.settings)
        if name not in known:
            raise PlacetoError(f"there is no setting {name!r}; settings: {', '.join(known)}")
        kind = get_type_hints(type(self.default))[name]
        if get_origin(kind) is Literal:
            return list(get_args(kind))
        return list(get_args(kind)) or [kind]


def _is_a(value: object, option: Any) -> bool:
    if isinstance(option, str):
        return type(value) is str and value == option
    if option is float:
        return type(value) is int or (isinstance(value, float) and math.isfinite(value))
    return type(value) is option
