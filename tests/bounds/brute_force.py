"""Every placement of small problems, and random problems to enumerate."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from placeto import PlacementProblem
from placeto.simulation import Outcomes, simulate_many
from placeto.support.arrays import Floats, Ints
from tests.strategies import problems

MOST_PLACEMENTS = 600


@dataclass(frozen=True)
class Enumerated:
    """A problem with all placements that obey its pins and kinds, simulated."""

    problem: PlacementProblem
    placements: Ints  # (num_placements, num_groups)
    outcomes: Outcomes

    @property
    def least(self) -> float:
        """The shortest step time."""
        return float(self.outcomes.step_time.min())

    @property
    def least_feasible(self) -> float:
        """The shortest step time of a feasible placement; infinite if there is none."""
        times: Floats = self.outcomes.step_time[self.outcomes.feasible]
        return float(times.min(initial=np.inf))


def enumerate_all(problem: PlacementProblem) -> Enumerated:
    devices = [np.flatnonzero(row) for row in problem.allowed]
    placements = np.array(list(itertools.product(*devices)))
    return Enumerated(problem, placements, simulate_many(problem, placements))


@st.composite
def enumerated(draw: st.DrawFn, max_ops: int = 9, **made: Any) -> Enumerated:
    """Random problems, some with pins and some with little memory."""
    problem = draw(problems(max_ops, **made))
    # Without pins few of the best placements transfer anything; with all there is one placement.
    choices = draw(st.sampled_from([[False], [False, True], [True]]))
    pins = {
        group: draw(st.sampled_from(np.flatnonzero(problem.allowed[group]).tolist()))
        for group in range(problem.num_groups)
        if draw(st.sampled_from(choices))
    }
    problem = replace(problem, grouping=problem.op_group, pins=pins)
    assume(problem.allowed.sum(axis=1).prod() <= MOST_PLACEMENTS)
    return enumerate_all(problem)
