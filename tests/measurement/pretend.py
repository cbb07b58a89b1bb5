"""Real devices, pretended: for what is done with measurements, not for how they are made."""

from collections.abc import Callable

import numpy as np
import pytest

from placeto.measurement import Effort, Measurement, Runtime

Rule = Callable[[np.ndarray], Measurement]


@pytest.fixture
def pretend(monkeypatch):
    """Makes every run end as a rule says of its devices; returns the runs: devices, effort."""

    def pretended(rule: Rule) -> list[tuple[list[int], Effort | None]]:
        runs = []

        def measure(runtime, problem, devices, runnable, effort=None, *, traces=0):
            runs.append((devices.tolist(), effort))
            return rule(devices)

        monkeypatch.setattr(Runtime, "measure", measure)
        return runs

    return pretended
