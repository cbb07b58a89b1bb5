"""The environment `DevicePlacement-v0`."""

from operator import index
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from placeto.envs.observation import Observation
from placeto.envs.specification import specify, taking
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError

ONLY = np.zeros(1, dtype=np.int64)


class DevicePlacementEnv(gymnasium.Env[Observation, int]):
    """Improve a placement step by step: each step gives one group a device.

    The MDP of Placeto (Addanki et al. 2019, arXiv:1906.08879, section 3.1). Many side by side
    are a `DevicePlacementVectorEnv`, which `gym.make_vec` makes.

    **Action**: `Discrete(num_devices)`, the current group's device. An action that `action_mask`
    forbids (a device that cannot run the group) leaves the group where it is.

    **Observation**: a `Dict` of arrays of fixed shapes, padded with zeros:

    | key | shape, type | what |
    |---|---|---|
    | `node_features` | (max_groups, 2 num_devices + 5) float32 | see `placeto.envs.features` |
    | `edge_index` | (2, max_edges) int64 | source and target group |
    | `edge_features` | (max_edges, 1) float32 | bytes, over the graph's largest |
    | `node_mask` | (max_groups,) int8 | 1 for a group, 0 for padding |
    | `edge_mask` | (max_edges,) int8 | 1 for an edge, 0 for padding |
    | `current_node` | int64 | the group whose device the action is |
    | `action_mask` | (num_devices,) int8 | 1 for a device that can run the current group |
    | `device_features` | (num_devices, 34) float32 | what the schedule says of that group there |

    The device features are those that the agent `placeto` scores devices by, of the schedule that
    the simulator finds for the present placement, whatever the evaluator:
    `placeto.envs.features.devices.device_feature_names()` has their names, `Pair` and `Group` of
    `placeto.envs.features.pairs` say what each is. One network that scores the devices one by one
    from them is for any number and kind of devices.

    **Reward**: with ρ(s) = step time + `memory_penalty` · GiB over the devices' memory,
    `"improvement"` is ρ(before) - ρ(after), so that the rewards of an episode add up to the
    whole gain; `"terminal"` is 0, and -ρ at the end. In seconds, or relative to the step time of
    the initial placement.

    **Start**: the initial placement, the first group of the traversal. **End**: `terminated`
    after `num_groups * sweeps` steps. Never truncated.

    **Info**: `step_time` (seconds), `best_step_time` and `best_placement` (max_groups,) of the
    episode (least ρ; -1 for padding), `peak_memory` (num_devices,) bytes, `feasible`, `graph`
    (name). Where step times are measured also `interval` (2,), seconds between which the median
    step is with 95% confidence, `steps_measured`, how many steps that is from, and `reason`, why
    the placement failed or was not run, or "".

    **Measuring**: with `evaluator="measure"` every placement that is met for the first time is run
    on the cluster's real devices, in processes that the environment starts at the first reset;
    `close` ends them. See `placeto.measurement.MeasuringEvaluator` for what of an outcome is
    measured and what is simulated, and for the step time of a placement that fails. Several such
    environments would time each other: to have many side by side, let `gym.make_vec` make the
    `DevicePlacementVectorEnv`, which measures one placement after another. With `measure_options`
    `{"runs": 20}` only so many of each graph are run, those that may be the fastest, and all else
    is simulated with the costs that they say; see `placeto.measurement.CorrectingEvaluator`.

    **Reset options**: `{"graph": name}` picks the graph, `{"placement": devices}` the start, which
    may be padded as `best_placement` is.

    Args:
        graph: one graph or several: names, paths, or graphs; `reset` draws one.
        cluster: preset, path, or cluster.
        grouping: as for `PlacementProblem`; default: at most 64 groups, so that episodes are short
            enough for an agent that starts from nothing to learn in a minute.
        initial_placement: `"first"` device, `"random"`, `"expert"`, or (num_groups,) devices.
        reward: `"improvement"` or `"terminal"`.
        reward_scale: `"relative"` or `"seconds"`.
        memory_penalty: seconds a GiB over a device's memory.
        sweeps: how often an episode goes through the groups.
        traversal: `"topological"` order of the groups, or a `"random"` one drawn each reset.
        evaluator: `"simulate"`, `"measure"`, or any callable with the evaluator's protocol, which
            `close` leaves open.
        measure_options: of `evaluator="measure"`, such as `{"steps": 10, "precision": 0.05}`: the
            fields of `placeto.measurement.Effort`, and `runs`, how many of each graph at most.
        max_groups: what observations are padded to; default: the largest graph's.
        max_edges: likewise.
        pins: group -> device, for every graph.
        order: which of a device's ready ops goes first, in every graph; as for `PlacementProblem`.
        render_mode: `"ansi"` (text) or `"rgb_array"` (the schedule as a picture).

    Raises:
        PlacetoError: an argument that cannot be used.

    Version history: v0, first.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    @taking(specify)
    def __init__(self, *arguments: Any, **more: Any) -> None:
        made_of = specify(*arguments, **more)
        self.render_mode = made_of.render_mode
        self.problems = made_of.problems
        self.num_devices = made_of.num_devices
        self.observation_space = made_of.space
        self.action_space = spaces.Discrete(self.num_devices)
        self._made_of = made_of
        self._episode = made_of.episodes(1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; see the class for `options`."""
        super().reset(seed=seed)
        self._episode.begin(ONLY, self._episode.starts.draw([self.np_random], options or {}))
        return self._episode.observe(0), self._episode.inform(0)

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Gives the current group the device `action`."""
        episode = self._episode
        if episode.over()[0]:
            raise gymnasium.error.ResetNeeded("call reset before step")
        try:
            device = index(action)
        except TypeError:
            device = -1
        if not 0 <= device < self.num_devices:
            raise PlacetoError(
                f"action is {action!r}, expected a device from 0 to {self.num_devices - 1}"
            )
        rewards, terminated = episode.step(ONLY, np.array([device]))
        reward, ended = float(rewards[0]), bool(terminated[0])
        return episode.observe(0), reward, ended, False, episode.inform(0)

    def action_masks(self) -> NDArray[np.bool_]:
        """(num_devices,) which actions the current group allows, as sb3-contrib asks for it."""
        masks: NDArray[np.bool_] = self._episode.progress.action_mask[0] > 0
        return masks

    def render(self) -> Any:
        """The current schedule: text (`"ansi"`) or a (height, width, 3) uint8 picture."""
        return self._episode.render(0, self.render_mode)

    def close(self) -> None:
        """Ends the processes of `evaluator="measure"`."""
        self._made_of.close()

    @property
    def problem(self) -> PlacementProblem:
        """The problem of the episode."""
        return self._episode.problem(0)
