"""The thirty named instances, whose best placements are proven."""

import pytest

from benchmarks.instances import NAMES, instance, optima
from placeto import place

OPTIMA = optima()


@pytest.mark.parametrize("name", NAMES)
def test_annealing_finds_the_best_placement(name):
    settings = {"max_evaluations": 8000}
    placement = place(instance(name), "annealing", 1e9, settings=settings)
    assert placement.feasible
    assert placement.step_time == pytest.approx(OPTIMA[name], rel=1e-9)
