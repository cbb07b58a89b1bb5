"""How fast policies train: environment steps a second, and where the time goes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.envs import episodes
from placeto.models.placeto_2019.network import Placeto2019Policy
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.placers.configs import PLACETO_2019
from placeto.simulation import EvaluatedBatch
from placeto.training import Trainer

SECONDS = 20.0  # of each training
PARTS: tuple[tuple[str, Any, str], ...] = (
    ("simulation", EvaluatedBatch, "place"),  # which `move` calls
    ("features", episodes, "node_features"),
    ("features", episodes, "update_node_features"),
    ("policy", Placeto2019Policy, "forward"),
    ("gradient", Trainer, "update"),
)


def training_speeds() -> dict[str, Any]:
    """`training_speed` as `placeto place` trains, and as `placeto train` does."""
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x2"), "papers")
    place = replace(PLACETO_2019.default, initial_placement="first")
    configs = {
        "`placeto place`": place,
        "likewise, 16 episodes at once": replace(place, episodes=16),
        "`placeto train`": Placeto2019Config(),
    }
    return {name: training_speed(problem, config, SECONDS) for name, config in configs.items()}


def training_speed(
    problem: PlacementProblem, config: Placeto2019Config, seconds: float
) -> dict[str, Any]:
    """Trains for so long after an update that is not counted, and at least one update.

    `evaluations` are placements simulated a step (a choice that keeps a group's device needs none).
    Of the `shares` of the time, `policy` is its forward pass in rollouts, the second is `gradient`.
    """
    training = Trainer([problem], config)
    training.step(0.0)
    evaluated = training.evaluations
    speeds: list[float] = []
    began = time.perf_counter()
    with _stopwatches() as spent:
        while not speeds or time.perf_counter() - began < seconds:
            done = min((time.perf_counter() - began) / seconds, 1.0)
            speeds.append(training.step(done).steps_per_second)
        took = time.perf_counter() - began
    spent["other"] = took - sum(spent.values())
    steps = config.episodes * problem.num_groups * config.sweeps * len(speeds)
    return {
        "steps_per_second": median(speeds), "fastest": max(speeds),
        "evaluations": (training.evaluations - evaluated) / steps, "episodes": config.episodes,
        "shares": {part: each / took for part, each in spent.items()},
    }  # fmt: skip


@contextmanager
def _stopwatches() -> Iterator[dict[str, float]]:
    """Seconds that are spent in each part while it is open."""
    spent: dict[str, float] = defaultdict(float)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if part == "policy" and not torch.is_inference_mode_enabled():
                return function(*args, **options)  # in other threads, and counted as gradient
            began = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                spent[part] += time.perf_counter() - began

        return call

    with ExitStack() as stack:
        for part, owner, name in PARTS:
            stack.enter_context(patch.object(owner, name, timed(part, getattr(owner, name))))
        yield spent
