"""The environment `DevicePlacement-v0`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, SupportsInt

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from placeto.cluster import Cluster, load_cluster
from placeto.envs.viewer import render_ansi, render_rgb
from placeto.errors import PlacetoError
from placeto.features import node_features, num_node_features, static_features
from placeto.graph import ComputationGraph, load_graph
from placeto.grouping import Grouping
from placeto.initial import InitialPlacement, initial_placement
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, Outcomes, find_evaluator, penalised_time, simulate

Graph = str | Path | ComputationGraph
Observation = dict[str, Any]


class DevicePlacementEnv(gymnasium.Env[Observation, int]):
    """Improve a placement step by step: each step gives one group a device.

    The MDP of Placeto (Addanki et al. 2019, arXiv:1906.08879, section 3.1).

    **Action**: `Discrete(num_devices)`, the current group's device. An action that `action_mask`
    forbids (a device that cannot run the group) leaves the group where it is.

    **Observation**: a `Dict` of arrays of fixed shapes, padded with zeros:

    | key | shape, type | what |
    |---|---|---|
    | `node_features` | (max_groups, 2 num_devices + 5) float32 | see `placeto.features` |
    | `edge_index` | (2, max_edges) int64 | source and target group |
    | `edge_features` | (max_edges, 1) float32 | bytes, over the graph's largest |
    | `node_mask` | (max_groups,) int8 | 1 for a group, 0 for padding |
    | `edge_mask` | (max_edges,) int8 | 1 for an edge, 0 for padding |
    | `current_node` | int64 | the group whose device the action is |
    | `action_mask` | (num_devices,) int8 | 1 for a device that can run the current group |

    **Reward**: with ρ(s) = step time + `memory_penalty` · GiB over the devices' memory,
    `"improvement"` is ρ(before) - ρ(after), so that the rewards of an episode add up to the
    whole gain; `"terminal"` is 0, and -ρ at the end. In seconds, or relative to the step time of
    the initial placement.

    **Start**: the initial placement, the first group of the traversal. **End**: `terminated`
    after `num_groups * sweeps` steps. Never truncated.

    **Info**: `step_time` (seconds), `best_step_time` and `best_placement` of the episode (least
    ρ), `peak_memory` (num_devices,) bytes, `feasible`, `graph` (name).

    **Reset options**: `{"graph": name}` picks the graph, `{"placement": devices}` the start.

    Args:
        graph: one graph or several: names, paths, or graphs; `reset` draws one.
        cluster: preset, path, or cluster.
        grouping: as for `PlacementProblem`.
        initial_placement: `"first"` device, `"random"`, `"expert"`, or (num_groups,) devices.
        reward: `"improvement"` or `"terminal"`.
        reward_scale: `"relative"` or `"seconds"`.
        memory_penalty: seconds a GiB over a device's memory.
        sweeps: how often an episode goes through the groups.
        traversal: `"topological"` order of the groups, or a `"random"` one drawn each reset.
        evaluator: `"simulate"`, or any callable with the evaluator's protocol.
        max_groups: what observations are padded to; default: the largest graph's.
        max_edges: likewise.
        pins: group -> device, for every graph.
        render_mode: `"ansi"` (text) or `"rgb_array"` (the schedule as a picture).

    Raises:
        PlacetoError: an argument that cannot be used.

    Version history: v0, first.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        graph: Graph | Sequence[Graph] = "inception_v3",
        cluster: str | Path | Cluster = "k80x4",
        grouping: Grouping = "auto",
        *,
        initial_placement: InitialPlacement = "first",
        reward: Literal["improvement", "terminal"] = "improvement",
        reward_scale: Literal["relative", "seconds"] = "relative",
        memory_penalty: float = 2.0,
        sweeps: int = 1,
        traversal: Literal["topological", "random"] = "topological",
        evaluator: str | Evaluator = "simulate",
        max_groups: int | None = None,
        max_edges: int | None = None,
        pins: Mapping[int, int] | None = None,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
    ) -> None:
        _check_choice("reward", reward, ("improvement", "terminal"))
        _check_choice("reward_scale", reward_scale, ("relative", "seconds"))
        _check_choice("traversal", traversal, ("topological", "random"))
        _check_choice("render_mode", render_mode, (None, "ansi", "rgb_array"))
        if not isinstance(sweeps, int) or sweeps < 1:
            raise PlacetoError(f"sweeps is {sweeps!r}, expected a whole number from 1")
        if not 0 <= memory_penalty < np.inf:
            raise PlacetoError(
                f"memory_penalty is {memory_penalty!r}, expected seconds a GiB from 0"
            )
        graphs = [graph] if isinstance(graph, str | Path | ComputationGraph) else list(graph)
        if not graphs:
            raise PlacetoError("graph is an empty list, expected at least one graph")
        placed_on = cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
        self.problems: dict[str, PlacementProblem] = {}
        for entry in graphs:
            loaded = entry if isinstance(entry, ComputationGraph) else load_graph(entry)
            if loaded.name in self.problems:
                raise PlacetoError(f"two graphs are called {loaded.name!r}; names must be unique")
            problem = PlacementProblem(loaded, placed_on, grouping, pins=pins or {})
            self.problems[loaded.name] = problem
        self._static = {name: static_features(p) for name, p in self.problems.items()}
        self._initial = initial_placement
        self._terminal = reward == "terminal"
        self._relative = reward_scale == "relative"
        self._memory_penalty = memory_penalty
        self._sweeps = sweeps
        self._random_traversal = traversal == "random"
        self._evaluate = find_evaluator(evaluator)
        self.render_mode = render_mode
        self.max_groups = _padded(
            "max_groups", max_groups, max(p.num_groups for p in self.problems.values())
        )
        self.max_edges = _padded(
            "max_edges", max_edges, max(len(p.group_edges[0]) for p in self.problems.values())
        )
        num_devices = placed_on.num_devices
        self.action_space = spaces.Discrete(num_devices)
        self.observation_space = _observation_space(self.max_groups, self.max_edges, num_devices)
        self._static_observation = {name: self._pad(name) for name in self.problems}
        self._started = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; see the class for `options`."""
        super().reset(seed=seed)
        options = dict(options or {})
        names = list(self.problems)
        name = options.pop("graph", None)
        if name is None:
            name = names[int(self.np_random.integers(len(names)))]
        elif name not in self.problems:
            raise PlacetoError(f"no graph is called {name!r}; graphs: {', '.join(names)}")
        placement = options.pop("placement", self._initial)
        if options:
            raise PlacetoError(
                f"unknown reset option {next(iter(options))!r}; known: graph, placement"
            )
        self.problem = problem = self.problems[name]
        self._devices = initial_placement(problem, placement, self.np_random)
        orders = [
            self.np_random.permutation(problem.num_groups)
            if self._random_traversal
            else problem.group_order
            for _ in range(self._sweeps)
        ]
        self._order = np.concatenate(orders)
        self._step = 0
        self._visited = np.zeros(problem.num_groups, dtype=bool)
        self._outcomes = self._evaluate(problem, self._devices[None])
        self._cost = self._penalised(self._outcomes)
        self._scale = float(self._outcomes.step_time[0]) if self._relative else 1.0
        if not self._scale > 0:
            self._scale = 1.0
        self._best = (self._cost, float(self._outcomes.step_time[0]), self._devices.copy())
        self._started = True
        return self._observe(), self._info()

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Gives the current group the device `action`."""
        if not self._started or self._step >= len(self._order):
            raise gymnasium.error.ResetNeeded("call reset before step")
        device = int(action)
        if not 0 <= device < self.problem.num_devices:
            raise PlacetoError(
                f"action is {action!r}, expected a device from 0 to {self.problem.num_devices - 1}"
            )
        group = self._order[self._step]
        before = self._cost
        if device != self._devices[group] and self.problem.allowed[group, device]:
            self._devices[group] = device
            self._outcomes = self._evaluate(self.problem, self._devices[None])
            self._cost = self._penalised(self._outcomes)
            if self._cost < self._best[0]:
                step_time = float(self._outcomes.step_time[0])
                self._best = (self._cost, step_time, self._devices.copy())
        self._visited[group] = True
        self._step += 1
        terminated = self._step == len(self._order)
        if self._terminal:
            reward = -self._cost / self._scale if terminated else 0.0
        else:
            reward = (before - self._cost) / self._scale
        return self._observe(), reward, terminated, False, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """(num_devices,) which actions the current group allows, as sb3-contrib asks for it."""
        masks: NDArray[np.bool_] = self.problem.allowed[self._current].copy()
        return masks

    def render(self) -> Any:
        """The current schedule: text (`"ansi"`) or a (height, width, 3) uint8 picture."""
        if self.render_mode is None or not self._started:
            return None
        schedule = simulate(self.problem, self._devices)
        if self.render_mode == "ansi":
            return render_ansi(self.problem, schedule)
        return render_rgb(self.problem, schedule)

    @property
    def _current(self) -> int:
        """The group at hand; after the last step, that of the last step."""
        return int(self._order[min(self._step, len(self._order) - 1)])

    def _penalised(self, outcomes: Outcomes) -> float:
        return float(penalised_time(self.problem, outcomes, self._memory_penalty)[0])

    def _observe(self) -> Observation:
        static = self._static_observation[self.problem.graph.name]
        observation = {key: value.copy() for key, value in static.items()}
        features = node_features(
            self._static[self.problem.graph.name],
            self._devices[None],
            self._outcomes.group_start,
            self._outcomes.step_time,
            np.array([self._current]),
            self._visited[None],
        )
        observation["node_features"][: self.problem.num_groups] = features[0]
        observation["current_node"] = np.int64(self._current)
        observation["action_mask"] = self.problem.allowed[self._current].astype(np.int8)
        return observation

    def _info(self) -> dict[str, Any]:
        return {
            "step_time": float(self._outcomes.step_time[0]),
            "best_step_time": self._best[1],
            "best_placement": self._best[2].copy(),
            "peak_memory": self._outcomes.peak_memory[0].copy(),
            "feasible": bool(self._outcomes.feasible[0]),
            "graph": self.problem.graph.name,
        }

    def _pad(self, name: str) -> Observation:
        """The part of a graph's observations that does not change."""
        problem = self.problems[name]
        source, target, _ = problem.group_edges
        observation: Observation = {
            "node_features": np.zeros(
                (self.max_groups, num_node_features(problem.num_devices)), np.float32
            ),
            "edge_index": np.zeros((2, self.max_edges), np.int64),
            "edge_features": np.zeros((self.max_edges, 1), np.float32),
            "node_mask": (np.arange(self.max_groups) < problem.num_groups).astype(np.int8),
            "edge_mask": (np.arange(self.max_edges) < len(source)).astype(np.int8),
        }
        observation["edge_index"][:, : len(source)] = source, target
        observation["edge_features"][: len(source)] = self._static[name].edge
        return observation


def _observation_space(max_groups: int, max_edges: int, num_devices: int) -> spaces.Dict:
    shape = (max_groups, num_node_features(num_devices))
    return spaces.Dict(
        {
            "node_features": spaces.Box(-1, 1, shape, np.float32),
            "edge_index": spaces.Box(0, max(max_groups - 1, 1), (2, max_edges), np.int64),
            "edge_features": spaces.Box(0, 1, (max_edges, 1), np.float32),
            "node_mask": spaces.MultiBinary(max_groups),
            "edge_mask": spaces.MultiBinary(max_edges),
            "current_node": spaces.Discrete(max_groups),
            "action_mask": spaces.MultiBinary(num_devices),
        }
    )


def _padded(name: str, asked: int | None, needed: int) -> int:
    least = max(needed, 1)
    if asked is None:
        return least
    if asked < least:
        raise PlacetoError(f"{name} is {asked}, but the largest graph needs {least}")
    return asked


def _check_choice(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        raise PlacetoError(f"{name} is {value!r}, expected one of {', '.join(map(str, known))}")
