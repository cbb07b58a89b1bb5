"""Which steps count on cores that are slower for a while; time is pretended."""

import itertools
import os
from types import SimpleNamespace

import pytest

from placeto.measurement import pace as module
from placeto.measurement.pace import Pace, calmest, slowest, unevenness


def run(monkeypatch, paces, wanted, patience=100.0):
    """What counts of steps 0, 1, …, a second each; the pace before the first is `paces[0]`."""
    now = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(now)))
    steps, paces = itertools.count(), iter(paces)
    return calmest(
        lambda: next(steps), lambda: [next(paces)], lambda some: len(some) >= wanted, patience
    )


def test_on_calm_cores_the_first_steps_count(monkeypatch):
    assert run(monkeypatch, [1.0, 1.1, 1.2, 1.0], 3) == ([0, 1, 2], [1.1, 1.2, 1.2])


def test_steps_with_a_slow_core_before_or_after_them_do_not_count(monkeypatch):
    paces = [1.0, 1.0, 1.4, 1.4, 1.0, 1.0, 1.0]
    assert run(monkeypatch, paces, 3) == ([0, 4, 5], [1.0, 1.0, 1.0])


def test_without_patience_those_disturbed_least_count_too(monkeypatch):
    paces = [1.5, 1.5, 1.3, 1.3, 1.6, 1.1, 1.0]
    steps, found = run(monkeypatch, paces, 2, patience=1.0)
    assert (steps, found) == ([0, 1], [1.5, 1.5])
    # Four steps on: 2 had 1.3 on both sides, 5 was calm.
    assert run(monkeypatch, paces, 2, patience=5.0) == ([2, 5], [1.3, 1.1])


def test_nothing_is_run_where_nothing_is_wanted(monkeypatch):
    assert run(monkeypatch, [1.0], 0) == ([], [])


def test_the_slowest_core_counts_beside_its_own_least(monkeypatch):
    core = min(os.sched_getaffinity(0))
    least = {core: 1.0}
    took = iter([3.0, 3.0, 1.5, 3.0, 0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 0.75, 0.75])
    monkeypatch.setattr(module, "_work", lambda: next(took))
    pace = Pace([core], least)
    assert [pace(), pace(), pace()] == [[1.5], [1.0], [1.5]]
    assert least == {core: 0.5}


def test_a_real_core_and_where_this_thread_runs_afterwards():
    home = os.sched_getaffinity(0)
    pace = Pace(sorted(home), {})
    assert pace() == [1.0] * len(home)
    assert min(max(pace()) for _ in range(20)) == pytest.approx(1.0, abs=0.5)
    assert os.sched_getaffinity(0) == home
    assert Pace([], {})() == []
    assert slowest([]) == unevenness([]) == 1.0
    assert (slowest([1.2, 1.5]), unevenness([1.2, 1.5])) == (1.5, 1.25)
