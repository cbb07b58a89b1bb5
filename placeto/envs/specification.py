"""What episodes of `DevicePlacement-v0` are made of: for both environments, and for a trainer."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec

from gymnasium import spaces

from placeto.cluster import Cluster, load_cluster
from placeto.envs.episodes import Episodes
from placeto.envs.features.devices import observe_devices
from placeto.envs.observation import observation_space
from placeto.envs.rules import EpisodeRules, check_choice
from placeto.graph import ComputationGraph, load_graph
from placeto.grouping import Grouping
from placeto.heuristics.initial import InitialPlacement
from placeto.measurement import Effort, MeasuringEvaluator, Runtime, find_runnable
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, find_evaluator, simulate_many
from placeto.simulation.first import compile_kernel
from placeto.support.beside import compile_beside
from placeto.support.errors import PlacetoError

Graph = str | Path | ComputationGraph
RenderMode = Literal["ansi", "rgb_array"] | None
Parameters = ParamSpec("Parameters")

DEFAULT_GROUPS = 64


@dataclass(frozen=True, eq=False)
class EpisodeSpecification:
    """What episodes are made of.

    Attributes:
        problems: by the names of their graphs; on one cluster.
        rules: start, length and reward.
        evaluate: turns placements into step times.
        max_groups: what observations are padded to; None: the largest graph's.
        max_edges: likewise.
        device_features: whether observations have them.
        render_mode: of an environment: `ansi`, `rgb_array` or None.
        measures: the evaluator where it has processes of the environment's own.
    """

    problems: Mapping[str, PlacementProblem]
    rules: EpisodeRules
    evaluate: Evaluator = simulate_many
    max_groups: int | None = None
    max_edges: int | None = None
    device_features: bool = True
    render_mode: RenderMode = None
    measures: MeasuringEvaluator | None = None

    @cached_property
    def space(self) -> spaces.Dict:
        """Of one episode's observations; a `PlacetoError` if they are too small for a graph."""
        space = observation_space([*self.problems.values()], self.max_groups, self.max_edges)
        if not self.device_features:
            del space.spaces["device_features"]
        return space

    @property
    def num_devices(self) -> int:
        """Of the cluster."""
        return next(iter(self.problems.values())).num_devices

    def episodes(self, batch: int) -> Episodes:
        """Episodes side by side."""
        return Episodes(self.problems, self.rules, self.evaluate, self.space, batch)

    def close(self) -> None:
        """Ends the processes of `evaluator="measure"`."""
        if self.measures is not None:
            self.measures.close()


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
