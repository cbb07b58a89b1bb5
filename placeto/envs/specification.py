"""The arguments of `DevicePlacement-v0`, in all its forms, and the specification they ask for."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec

from placeto.cluster import Cluster, load_cluster
from placeto.envs.episodes import EpisodeSpecification, RenderMode
from placeto.envs.features.devices import observe_devices
from placeto.envs.rules import EpisodeRules, check_choice
from placeto.graph import ComputationGraph, load_graph
from placeto.grouping import Grouping
from placeto.heuristics.initial import InitialPlacement
from placeto.measurement import Effort, MeasuringEvaluator, Runtime, find_runnable
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, find_evaluator
from placeto.simulation.first import compile_kernel
from placeto.support.beside import compile_beside
from placeto.support.errors import PlacetoError

Graph = str | Path | ComputationGraph
Parameters = ParamSpec("Parameters")

DEFAULT_GROUPS = 64


def specify(
    graph: Graph | Sequence[Graph] = "inception_v3",
    cluster: str | Path | Cluster = "k80x4",
    grouping: Grouping = DEFAULT_GROUPS,
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
    render_mode: RenderMode = None,
) -> EpisodeSpecification:
    """The specification that an environment's arguments ask for; see `DevicePlacementEnv`.

    Raises:
        PlacetoError: an argument that cannot be used.
    """
    rules = EpisodeRules(initial_placement, reward, reward_scale, memory_penalty, sweeps, traversal)
    check_choice("render_mode", render_mode, (None, "ansi", "rgb_array"))
    stages = ("groups", "features")
    if compile_beside("placeto.envs.compiling:compile_all", stages, observe_devices):
        compile_kernel()
    graphs = [graph] if isinstance(graph, str | Path | ComputationGraph) else list(graph)
    problems = _problems(graphs, cluster, grouping, pins or {})
    evaluate = _evaluator(evaluator, measure_options, problems)
    measures = evaluate if isinstance(evaluate, MeasuringEvaluator) else None
    return EpisodeSpecification(
        problems,
        rules,
        evaluate,
        max_groups,
        max_edges,
        render_mode=render_mode,
        measures=None if evaluate is evaluator else measures,
    )


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


def _problems(
    graphs: Sequence[Graph],
    cluster: str | Path | Cluster,
    grouping: Grouping,
    pins: Mapping[int, int],
) -> dict[str, PlacementProblem]:
    if not graphs:
        raise PlacetoError("graph is an empty list, expected at least one graph")
    placed_on = cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
    problems: dict[str, PlacementProblem] = {}
    for entry in graphs:
        loaded = entry if isinstance(entry, ComputationGraph) else load_graph(entry)
        if loaded.name in problems:
            raise PlacetoError(f"two graphs are called {loaded.name!r}; names must be unique")
        problems[loaded.name] = PlacementProblem(loaded, placed_on, grouping, pins=pins)
    return problems


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
    known = [field.name for field in fields(Effort)]
    for option in options or {}:
        if option not in known:
            raise PlacetoError(
                f"measure_options: there is no {option!r}; options: {', '.join(known)}"
            )
    effort = Effort(**(options or {}))
    runtime = Runtime(next(iter(problems.values())).cluster)
    runnables = {name: find_runnable(problem.graph) for name, problem in problems.items()}
    return MeasuringEvaluator(runtime, effort, runnables)
