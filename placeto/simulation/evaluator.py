"""Evaluators: what turns placements into step times, and the time that a policy is judged by."""

from collections.abc import Callable

import numpy as np
from numba import njit

from placeto.errors import PlacetoError
from placeto.graph import Floats, Ints
from placeto.problem import PlacementProblem
from placeto.simulation.simulate import Outcomes, simulate_many

GIB = 2.0**30

Evaluator = Callable[[PlacementProblem, Ints], Outcomes]
"""An evaluator's protocol: called with a problem and (batch, num_groups) devices, it returns
`Outcomes`. `simulate_many` is one. Where an environment is to ask it, step times must be finite,
and no group may start after the step's end."""


def find_evaluator(evaluator: str | Evaluator) -> Evaluator:
    """The evaluator of a name, or the evaluator itself.

    Raises:
        PlacetoError: a name that stands for none.
    """
    if callable(evaluator):
        return evaluator
    if evaluator == "simulate":
        return simulate_many
    raise PlacetoError(
        f"evaluator is {evaluator!r}, expected simulate, or a callable that takes a problem and "
        "(batch, num_groups) devices and returns Outcomes"
    )


def penalised_time(problem: PlacementProblem, outcomes: Outcomes, memory_penalty: float) -> Floats:
    """ρ: step time plus `memory_penalty` for every GiB over the limit, summed over devices.

    Args:
        problem: whose devices' memory is the limit.
        outcomes: of a batch of placements.
        memory_penalty: seconds a GiB.

    Returns:
        (batch,) seconds.
    """
    penalised = np.empty(len(outcomes.step_time))
    _penalise(
        outcomes.step_time, outcomes.peak_memory, problem.memory_limit, memory_penalty, penalised
    )
    return penalised


@njit(cache=True)
def _penalise(
    step_time: Floats, peak: Ints, limit: Ints, penalty: float, penalised: Floats
) -> None:  # pragma: no cover
    for row in range(len(step_time)):
        over = 0
        for device in range(len(limit)):
            over += max(peak[row, device] - limit[device], 0)
        penalised[row] = step_time[row] + penalty * (over / GIB)
