"""The evaluator of an environment: by name, or the user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from placeto.envs.rules import check_choice
from placeto.measurement import Effort, MeasuringEvaluator, Runtime, find_runnable
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, find_evaluator
from placeto.support.errors import PlacetoError


def make_evaluator(
    evaluator: str | Evaluator,
    measure_options: Mapping[str, Any] | None,
    problems: Sequence[PlacementProblem],
) -> Evaluator:
    """The evaluator that an environment was asked for.

    Args:
        evaluator: `simulate`, `measure`, or an evaluator.
        measure_options: fields of `Effort`, for `measure`.
        problems: one a graph.

    Raises:
        PlacetoError: an unknown name, options that cannot be used, a graph or a cluster that cannot
            be run.
    """
    if evaluator != "measure":
        if measure_options is not None:
            raise PlacetoError(
                f"measure_options are for evaluator='measure', but evaluator is {evaluator!r}"
            )
        if isinstance(evaluator, str):
            check_choice("evaluator", evaluator, ("simulate", "measure"))
        return find_evaluator(evaluator)
    known = [field.name for field in fields(Effort)]
    for option in measure_options or {}:
        if option not in known:
            raise PlacetoError(
                f"measure_options: there is no {option!r}; options: {', '.join(known)}"
            )
    effort = Effort(**(measure_options or {}))
    runtime = Runtime(problems[0].cluster)
    runnables = {problem.graph.name: find_runnable(problem.graph) for problem in problems}
    return MeasuringEvaluator(runtime, effort, runnables)
