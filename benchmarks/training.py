"""How fast policies train: environment steps a second, and where the time goes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from placeto.envs import episodes
from placeto.models.placeto_2019.network import Placeto2019Policy
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.problem import PlacementProblem
from placeto.simulation import EvaluatedBatch
from placeto.training import Trainer

PARTS: tuple[tuple[str, Any, str], ...] = (
    ("simulation", EvaluatedBatch, "place"),  # which `move` calls
    ("features", episodes, "node_features"),
    ("features", episodes, "update_node_features"),
    ("policy", Placeto2019Policy, "forward"),
    ("gradient", Trainer, "update"),
)


def training_speed(
    problem: PlacementProblem, config: Placeto2019Config, seconds: float
) -> dict[str, Any]:
    """Trains for a while and says how fast: rollouts, policy and gradient included.

    Args:
        problem: what is trained on.
        config: how; an update takes `episodes * num_groups * sweeps` environment steps.
        seconds: how long, in wall-clock, after an update that is not counted; at least one more
            update is made.

    Returns:
        `steps_per_second` of the median update; `fastest`, that of the fastest; `evaluations`,
        placements simulated a step, over all updates (a choice that keeps a group's device needs
        none); `episodes`; and the `shares` of the whole time: `simulation`, `features`, `policy`
        (its forward pass in rollouts), `gradient` (its second forward pass included) and `other`.
    """
    training = Trainer([problem], config)
    training.step(0.0)
    steps = config.episodes * problem.num_groups * config.sweeps
    evaluated = training.evaluations
    speeds: list[float] = []
    began = time.perf_counter()
    with _stopwatches() as spent:
        while not speeds or time.perf_counter() - began < seconds:
            done = min((time.perf_counter() - began) / seconds, 1.0)
            speeds.append(training.step(done).steps_per_second)
        took = time.perf_counter() - began
    spent["other"] = took - sum(spent.values())
    return {
        "steps_per_second": median(speeds),
        "fastest": max(speeds),
        "evaluations": (training.evaluations - evaluated) / (steps * len(speeds)),
        "episodes": config.episodes,
        "shares": {part: each / took for part, each in spent.items()},
    }


@contextmanager
def _stopwatches() -> Iterator[dict[str, float]]:
    """Seconds that are spent in each part while it is open."""
    spent: dict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for part, owner, name in PARTS:
            timed = _timed(getattr(owner, name), part, spent)
            stack.enter_context(patch.object(owner, name, timed))
        yield spent


def _timed(function: Callable[..., Any], part: str, spent: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **options: Any) -> Any:
        if part == "policy" and not torch.is_inference_mode_enabled():
            return function(*args, **options)  # in other threads, and counted as gradient
        began = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            spent[part] += time.perf_counter() - began

    return timed
