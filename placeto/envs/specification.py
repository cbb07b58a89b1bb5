"""The arguments of `DevicePlacement-v0`, in all its forms, and the specification they ask for."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec

import numpy as np

from placeto.cluster import Cluster, load_cluster
from placeto.envs import generator
from placeto.envs.episodes import EpisodeSpecification, RenderMode
from placeto.envs.features.devices import ScheduledBatch, observe_devices
from placeto.envs.observation import empty_observations, observation_space
from placeto.envs.progress import no_progress
from placeto.envs.rules import EpisodeRules, check_choice
from placeto.graph import ComputationGraph, load_graph
from placeto.grouping import Grouping, group_ops
from placeto.heuristics.initial import InitialPlacement
from placeto.measurement import (
    CorrectingEvaluator,
    Effort,
    MeasuringEvaluator,
    Runtime,
    find_runnable,
)
from placeto.order import Order
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, find_evaluator, simulate_many
from placeto.simulation.simulate import compile_kernel
from placeto.support.beside import compile_beside, done
from placeto.support.errors import PlacetoError

Graph = str | Path | ComputationGraph
Parameters = ParamSpec("Parameters")


def specify(
    graph: Graph | Sequence[Graph] = "inception_v3",
    cluster: str | Path | Cluster = "k80x4",
    grouping: Grouping = 64,
    *,
    initial_placement: InitialPlacement = "first",
    reward: Literal["improvement", "terminal"] = "improvement",
    reward_scale: Literal["relative", "seconds"] = "relative",
    memory_penalty: float = 2.0,
    sweeps: int = 1,
    traversal: Literal["topological", "random"] = "topological",
    evaluator: str | Evaluator = "simulate",
    measure_options: Mapping[str, Any] | None = None,
    max_groups: int | None = None,
    max_edges: int | None = None,
    pins: Mapping[int, int] | None = None,
    order: Order = "fifo",
    render_mode: RenderMode = None,
) -> EpisodeSpecification:
    """The specification that an environment's arguments, if they can be used, ask for.

    See `DevicePlacementEnv`.
    """
    rules = EpisodeRules(initial_placement, reward, reward_scale, memory_penalty, sweeps, traversal)
    check_choice("render_mode", render_mode, (None, "ansi", "rgb_array"))
    if compile_beside(f"{__name__}:compile_all", ("groups", "features"), observe_devices):
        compile_kernel()
    graphs = [graph] if isinstance(graph, str | Path | ComputationGraph) else list(graph)
    if not graphs:
        raise PlacetoError("graph is an empty list, expected at least one graph")
    placed_on = cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
    problems: dict[str, PlacementProblem] = {}
    for entry in graphs:
        loaded = entry if isinstance(entry, ComputationGraph) else load_graph(entry)
        if loaded.name in problems:
            raise PlacetoError(f"two graphs are called {loaded.name!r}; names must be unique")
        problems[loaded.name] = PlacementProblem(
            loaded, placed_on, grouping, pins=pins or {}, order=order
        )
    evaluate = _evaluator(evaluator, measure_options, problems)
    own = None if evaluate is evaluator else evaluate
    measures = own if isinstance(own, MeasuringEvaluator) else None
    return EpisodeSpecification(
        problems, rules, evaluate, max_groups, max_edges, render_mode=render_mode, measures=measures
    )


def compile_all() -> None:
    """What a first environment has compiled by another process, which leaves the kernel to it."""
    problem = generator.diamond()
    group_ops(problem.graph, 2)
    done("groups")
    seen = empty_observations(1, observation_space([problem], None, None))
    batch = ScheduledBatch(problem, 1, simulate_many, kernel=False)
    batch.write(np.zeros(0, dtype=np.int64), no_progress(seen, 1), seen["device_features"])
    done("features")


def taking(
    source: Callable[Parameters, Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, Parameters], None]]:
    """Gives a method the parameters of a function, for people and for type checkers."""

    def told(method: Callable[..., None]) -> Callable[Concatenate[Any, Parameters], None]:
        own = inspect.signature(method)
        given = [own.parameters["self"], *inspect.signature(source).parameters.values()]
        method.__signature__ = own.replace(parameters=given)  # type: ignore[attr-defined]
        return method

    return told


def _evaluator(
    asked: str | Evaluator,
    options: Mapping[str, Any] | None,
    problems: Mapping[str, PlacementProblem],
) -> Evaluator:
    if asked != "measure":
        if options is not None:
            raise PlacetoError(
                f"measure_options are for evaluator='measure', but evaluator is {asked!r}"
            )
        if isinstance(asked, str):
            check_choice("evaluator", asked, ("simulate", "measure"))
        return find_evaluator(asked)
    options = dict(options or {})
    known = ["runs", *(field.name for field in fields(Effort))]
    if unknown := [option for option in options if option not in known]:
        raise PlacetoError(
            f"measure_options: there is no {unknown[0]!r}; options: {', '.join(known)}"
        )
    most_runs = options.pop("runs", None)
    effort, runtime = Effort(**options), Runtime(next(iter(problems.values())).cluster)
    runnables = {name: find_runnable(problem.graph) for name, problem in problems.items()}
    if most_runs is None:
        return MeasuringEvaluator(runtime, effort, runnables)
    return CorrectingEvaluator(runtime, most_runs, effort, runnables)
