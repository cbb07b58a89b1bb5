"""The vector form of `DevicePlacement-v0`."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from placeto.envs.device_placement import DevicePlacementEnv
from placeto.envs.episodes import EpisodeSpecification
from placeto.envs.observation import Observation
from placeto.envs.rules import check_choice, check_count
from placeto.envs.specification import specify
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.errors import PlacetoError

Infos = dict[str, Any]


class DevicePlacementVectorEnv(VectorEnv[Observation, ArrayLike, NDArray[Any]]):
    """Many `DevicePlacement-v0` side by side, simulated together; of different graphs if need be.

    What `gym.make_vec("DevicePlacement-v0", num_envs=64, ...)` makes. Environment i does what a
    `DevicePlacementEnv` does that is seeded as it is; observations, rewards, infos and resets
    are put together as Gymnasium's `SyncVectorEnv` does it:

    **Action**: `MultiDiscrete`, (num_envs,) devices. **Observation**: each array of the single
    environment's with an axis of environments in front. **Info**: likewise, and `_key` is a
    (num_envs,) mask of the environments that have the `key`.

    **Autoreset**: an environment whose episode has ended is reset by the next step, which ignores
    its action and gives it no reward (`NEXT_STEP`, the default); or by the step that ends it,
    whose infos then hold `final_obs` and `final_info` (`SAME_STEP`); or by nobody (`DISABLED`).

    **Reset options**: those of the single environment, for all; and `{"reset_mask": mask}` with
    a (num_envs,) bool array, to reset only some.

    Args:
        num_envs: how many environments.
        *arguments: those of `DevicePlacementEnv`.
        autoreset_mode: an `AutoresetMode` or its value.
        max_episode_steps: after so many an episode is truncated; Gymnasium passes it on here, where
            a single environment is wrapped in a `TimeLimit`. None for no limit.
        **more: those of `DevicePlacementEnv`.

    Raises:
        PlacetoError: an argument that cannot be used.
    """

    # Gymnasium closes environments that could not be made.
    _made_of: EpisodeSpecification | None = None

    def __init__(
        self,
        num_envs: int = 1,
        *arguments: Any,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        **more: Any,
    ) -> None:
        check_count("num_envs", num_envs)
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        made_of = specify(*arguments, **more)
        self.num_envs = int(num_envs)
        self._most_steps = np.inf if max_episode_steps is None else max_episode_steps
        if not isinstance(autoreset_mode, AutoresetMode):
            known = [mode.value for mode in AutoresetMode]
            check_choice("autoreset_mode", autoreset_mode, known)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**DevicePlacementEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = made_of.render_mode
        self.problems = made_of.problems
        self.num_devices = made_of.num_devices
        self.single_observation_space = made_of.space
        self.single_action_space = spaces.Discrete(self.num_devices)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._made_of = made_of
        self._episodes = made_of.episodes(self.num_envs)
        self._seeded = [seeding.np_random() for _ in range(self.num_envs)]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, Infos]:
        """Starts episodes in all environments, or in those of a mask; only these have infos.

        Args:
            seed: of the first environment, each next one has one more; or one for each; None
                goes on with the numbers of before.
            options: see the class.

        Raises:
            PlacetoError: seeds or options that cannot be used.
        """
        seeds = self._each_seed(seed)
        options = dict(options or {})
        mask = np.ones(self.num_envs, dtype=bool)
        if "reset_mask" in options:
            mask = self._checked_mask(options.pop("reset_mask"))
        for row in np.flatnonzero(mask).tolist():
            if seeds[row] is not None:
                self._seeded[row] = seeding.np_random(seeds[row])
        self._start(mask, options)
        return self._observations(), self._infos(mask)

    def step(self, actions: ArrayLike) -> tuple[Observation, Floats, Bools, Bools, Infos]:
        """Gives the current group of each environment a device, in (num_envs,) `actions`."""
        progress = self._episodes.progress
        over = self._episodes.over() | (progress.taken >= self._most_steps)
        started = progress.length.all()
        if not started or (over.any() and self.autoreset_mode is AutoresetMode.DISABLED):
            raise gymnasium.error.ResetNeeded(
                f"call reset before step, for environment {int(over.argmax())} at least"
            )
        devices = self._checked_actions(actions, over)
        rewards, terminated = self._episodes.step(np.flatnonzero(~over), devices)
        truncated = (progress.taken >= self._most_steps) & ~over
        infos: Infos = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            over = terminated | truncated
            if over.any():
                infos = self._finals(over)
        if over.any():
            self._start(over, {})
        infos.update(self._infos(np.ones(self.num_envs, dtype=bool)))
        return self._observations(), rewards, terminated, truncated, infos

    def action_masks(self) -> Bools:
        """(num_envs, num_devices) which actions the current groups allow."""
        return self._episodes.progress.action_mask > 0

    def render(self) -> tuple[Any, ...]:
        """What each environment's `render` returns."""
        return tuple(self._episodes.render(row, self.render_mode) for row in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the processes of `evaluator="measure"`."""
        if self._made_of is not None:
            self._made_of.close()

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generator of each environment."""
        return tuple(generator for generator, _ in self._seeded)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """What each environment's generator was seeded with."""
        return tuple(seed for _, seed in self._seeded)

    def _start(self, mask: Bools, options: Mapping[str, Any]) -> None:
        rows = np.flatnonzero(mask)
        generators = [self._seeded[row][0] for row in rows.tolist()]
        self._episodes.begin(rows, self._episodes.starts.draw(generators, options))

    def _observations(self) -> Observation:
        return {key: value.copy() for key, value in self._episodes.observations.items()}

    def _infos(self, mask: Bools) -> Infos:
        """The infos of some environments; nothing in the places of others."""
        infos: Infos = {}
        for key, value in self._episodes.infos.items():
            part = value.copy()
            part[~mask] = None if part.dtype == object else 0
            infos[key], infos[f"_{key}"] = part, mask.copy()
        return infos

    def _finals(self, ended: Bools) -> Infos:
        """The last observations and infos of the episodes that have ended."""
        last = np.full(self.num_envs, None, dtype=object)
        for row in np.flatnonzero(ended).tolist():
            last[row] = self._episodes.observe(row)
        infos: Infos = {"final_obs": last, "final_info": self._infos(ended)}
        return infos | {f"_{key}": ended.copy() for key in infos}

    def _each_seed(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if isinstance(seed, int | np.integer):
            return [int(seed) + row for row in range(self.num_envs)]
        seeds: list[int | None] = [None] * self.num_envs if seed is None else [*seed]
        if len(seeds) != self.num_envs:
            raise PlacetoError(
                f"there are {len(seeds)} seeds, expected {self.num_envs}: one an environment"
            )
        return seeds

    def _checked_mask(self, mask: object) -> Bools:
        found = np.asarray(mask)
        if found.shape != (self.num_envs,) or found.dtype != np.bool_ or not found.any():
            raise PlacetoError(
                f"reset_mask has shape {found.shape} and {found.dtype} values, "
                f"expected ({self.num_envs},) bool values, at least one of them true"
            )
        if not (found | (self._episodes.progress.length > 0)).all():
            raise PlacetoError("reset_mask leaves out environments that were never reset")
        return found

    def _checked_actions(self, actions: ArrayLike, ignored: Bools) -> Ints:
        try:
            found = np.asarray(actions)
        except ValueError as error:
            raise PlacetoError("actions are not an array of device numbers") from error
        if found.shape != (self.num_envs,):
            raise PlacetoError(
                f"actions have shape {found.shape}, expected ({self.num_envs},): "
                "one device an environment"
            )
        if not np.issubdtype(found.dtype, np.integer):
            raise PlacetoError(f"actions have {found.dtype} values, expected device numbers")
        if (wrong := ((found < 0) | (found >= self.num_devices)) & ~ignored).any():
            row = int(wrong.argmax())
            raise PlacetoError(
                f"action of environment {row} is {found[row]}, "
                f"expected a device from 0 to {self.num_devices - 1}"
            )
        return found.astype(np.int64)
