"""Whether a graph on a single device takes as long when it is run again; else it is measured again.

A machine that does something else for a while makes every figure of that while wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placeto.measurement.calibration.profile import Profile

WITHIN = 0.03
TRIES = 3


@dataclass(frozen=True)
class Confirmed:
    """A graph that ran as a whole on each device, and ran again.

    Attributes:
        profiles: (num_devices,) those that count.
        again: (num_devices,) seconds of a step when it ran again.
        tries: how often it was profiled.
    """

    profiles: list[Profile]
    again: list[float]
    tries: int


def confirm(
    kinds: Sequence[str],
    profiles: list[Profile],
    run_again: Callable[[], list[float]],
    profile_again: Callable[[], list[Profile]],
) -> Confirmed:
    """Profiles that a second run agrees with, within `WITHIN`; the last ones after `TRIES`.

    Args:
        kinds: (num_devices,) kind of each device; those of one kind are taken to be equal.
        profiles: (num_devices,) the first ones.
        run_again: (num_devices,) seconds of a step on each.
        profile_again: makes such profiles again.
    """
    tries = 1
    while True:
        again = run_again()
        if tries == TRIES or farthest(kinds, profiles, again) <= WITHIN:
            return Confirmed(profiles, again, tries)
        profiles = profile_again()
        tries += 1


def farthest(kinds: Sequence[str], profiles: Sequence[Profile], again: Sequence[float]) -> float:
    """How far a step on any device is from the mean of those profiled on its kind, as a fraction.

    Args:
        kinds: (num_devices,) kind of each device.
        profiles: (num_devices,)
        again: (num_devices,) seconds of a step.
    """
    steps = np.array([each.step_seconds for each in profiles])
    expected = [steps[[other == kind for other in kinds]].mean() for kind in kinds]
    return float(np.abs(np.array(expected) / again - 1).max())
