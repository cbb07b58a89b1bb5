import itertools

import numpy as np
import pytest

from placeto import step_times
from placeto.envs import generator


@pytest.mark.parametrize(
    ("toy", "best", "single"),
    [
        (generator.chain, 40e-3, 40e-3),
        (generator.fork, 30e-3, 40e-3),
        (generator.diamond, 41e-3, 60e-3),
        (generator.unequal, 16e-3, 20e-3),
    ],
)
def test_stated_optimum_is_that_of_enumeration(toy, best, single):
    problem = toy()
    every = np.array(list(itertools.product(range(2), repeat=problem.num_groups)))
    times = step_times(problem, every)
    assert times.min() == pytest.approx(best, rel=1e-12)
    assert min(times[0], times[-1]) == pytest.approx(single, rel=1e-12)
