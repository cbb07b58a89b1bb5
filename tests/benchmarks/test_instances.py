import json

import numpy as np
import pytest

from benchmarks.instances import FAMILIES, NAMES, instance, optima
from benchmarks.output import RESULTS
from placeto import PlacementProblem, place, simulate
from placeto.simulation import simulate_many

ROWS = {
    row["instance"]: row for row in json.loads((RESULTS / "instances.json").read_text())["rows"]
}
FEW = 200_000
LEARNED = {"colocrl": 12_000, "hierarchical": 12_000, "placeto-2019": 4_000}


def all_step_times(problem: PlacementProblem) -> np.ndarray:
    """Seconds of every placement that fits."""
    shape = problem.allowed.sum(axis=1)
    assert (shape == problem.num_devices).all()
    many = np.stack(np.unravel_index(np.arange(shape.prod()), shape), axis=1)
    outcomes = simulate_many(problem, many, group_start=False)
    return outcomes.step_time[outcomes.feasible]


def test_thirty_names_of_six_families():
    found = [instance(name) for name in NAMES]
    assert [problem.graph.name for problem in found] == list(NAMES)
    assert len(set(NAMES)) == 30
    assert {name.split("-")[0] for name in NAMES} == set(FAMILIES)
    assert max(problem.num_groups for problem in found) <= 12


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_of_all_placements(name):
    problem, row = instance(name), ROWS[name]
    schedule = simulate(problem, [int(device) for device in row["placement"]])
    assert schedule.feasible
    assert schedule.step_time == optima()[name] == row["optimum"]
    if problem.num_devices**problem.num_groups <= FEW:
        assert row["optimum"] == pytest.approx(all_step_times(problem).min(), rel=1e-8)


def test_the_optimum_of_too_many_placements():
    name = "series_parallel-12-four-multicast"
    placement = place(instance(name), "exact", budget_seconds=60)
    assert placement.step_time == pytest.approx(optima()[name], rel=1e-8)
    assert placement.lower_bound == pytest.approx(optima()[name], rel=1e-8)


def test_they_are_worth_solving():
    """Most are beyond one device and beyond list scheduling; one device is enough for some."""
    best = optima()
    gains = {
        method: [place(instance(name), method).step_time / best[name] - 1 for name in NAMES]
        for method in ("single", "etf")
    }
    assert sum(gain > 0.05 for gain in gains["single"]) >= 20
    assert sum(gain > 1e-8 for gain in gains["etf"]) >= 20
    assert any(abs(gain) < 1e-8 for gain in gains["single"])
    devices_used = [len(set(row["placement"])) for row in ROWS.values()]
    assert set(devices_used) == {1, 2, 3, 4}
