"""Tells griffe, which only reads sources, the signature that `@taking(specify)` gives."""

from typing import Any

import griffe


class Signatures(griffe.Extension):
    """Copies the parameters of `specify` to the environment that takes them."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Once the package is read."""
        taken = pkg["envs.device_placement.DevicePlacementEnv.__init__"].parameters
        while len(taken) > 1:
            del taken[1]
        for parameter in pkg["envs.specification.specify"].parameters:
            taken.add(parameter)
