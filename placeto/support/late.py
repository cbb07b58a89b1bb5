"""Packages that load what they offer when it is first asked for."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def loaded_late(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A package's `__getattr__`, which loads the names that modules of `placeto` define.

    Args:
        package: its full name.
        homes: the names by module, as it is called within `placeto`.
    """

    def load(name: str) -> Any:
        for home, names in homes.items():
            if name in names:
                value = getattr(importlib.import_module(f"placeto.{home}"), name)
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
