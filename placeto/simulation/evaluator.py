"""Evaluators: what turns placements into step times."""

from collections.abc import Callable

from placeto.problem import PlacementProblem
from placeto.simulation.simulate import Outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

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
