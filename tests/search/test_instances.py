"""The thirty named instances, whose best placements are proven."""

import numpy as np
import pytest

from benchmarks.instances import NAMES, instance, optima
from placeto.placers import Incumbent
from placeto.search.annealing import anneal
from placeto.search.settings import AnnealingConfig

OPTIMA = optima()


@pytest.mark.parametrize("name", NAMES)
def test_annealing_finds_the_best_placement(name):
    incumbent = Incumbent(instance(name), budget_seconds=1e9)
    anneal(incumbent, np.random.default_rng(0), AnnealingConfig(max_evaluations=8000))
    assert incumbent.feasible
    assert incumbent.step_time == pytest.approx(OPTIMA[name], rel=1e-9)
