"""Real devices, pretended: for what is done with measurements, not for how they are made."""

from collections.abc import Callable

import numpy as np
import pytest

from placeto.measurement import Effort, Measurement, Runtime

Rule = Callable[[np.ndarray], Measurement]


@pytest.fixture
def pretend(monkeypatch):
    """Makes every run end as a rule says of its devices; returns the runs: devices, effort.

    Of placements in turn the last one is run; the others end as they did before.
    """

    def pretended(rule: Rule) -> list[tuple[list[int], Effort | None]]:
        runs, known = [], {}

        def measure(runtime, problem, devices, runnable, effort=None, *, traces=0):
            runs.append((devices.tolist(), effort))
            found = known[devices.tobytes()] = rule(devices)
            return found

        def compare(runtime, problem, many, runnable, effort=None, *, traces=0):
            *others, last = many
            found = measure(runtime, problem, last, runnable, effort)
            if not found.feasible:
                return [found] * len(many)
            return [*(known[devices.tobytes()] for devices in others), found]

        monkeypatch.setattr(Runtime, "measure", measure)
        monkeypatch.setattr(Runtime, "compare", compare)
        return runs

    return pretended
