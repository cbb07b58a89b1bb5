"""Environment steps a second, beside an environment that runs the plain Python reference."""

import time
from functools import partial
from typing import Any

import gymnasium
import numba
import numpy as np
from gymnasium.vector import VectorEnv

from benchmarks.speed.others import ReferenceEnv
from benchmarks.speed.simulation import CLUSTER
from benchmarks.speed.timing import in_turn
from placeto.support.arrays import Floats, Ints

# Of op-level groups an episode has thousands of steps: the first ones, from random placements and
# in random order, stand for those on the way.
OPTIONS = {
    "default": {},
    "none": {"grouping": "none", "initial_placement": "random", "traversal": "random"},
}
ENVIRONMENTS = (("inception_v3", "default"), ("nmt", "default"), ("inception_v3", "none"))
STEPS = {"default": 128, "none": 32}  # at most
NUM_ENVS = 64
EVERY = 8  # steps of which the reference is run, and counted, at one
ROUNDS = 5


def environment_speed(graph: str, grouping: str) -> dict[str, Any]:
    """Seconds a step of every form of one environment, resets not counted.

    Actions are random, of all devices or, for `moves`, of all but the group's present one.
    """
    arguments: dict[str, Any] = {"graph": graph, "cluster": CLUSTER, **OPTIONS[grouping]}
    vector: Any = gymnasium.make_vec("DevicePlacement-v0", num_envs=NUM_ENVS, **arguments)
    wrapped = gymnasium.make("DevicePlacement-v0", **arguments)
    environments = {"gym.make": wrapped, "unwrapped": wrapped.unwrapped, "vector": vector,
                    "reference": ReferenceEnv(EVERY, **arguments)}  # fmt: skip
    groups = next(iter(vector.problems.values())).num_groups
    found = {"graph": graph, **OPTIONS[grouping], "grouping": grouping, "groups": groups}
    shape = min(STEPS[grouping], groups), NUM_ENVS
    for kind, lowest in (("any", 0), ("moves", 1)):
        shifts = np.random.default_rng(0).integers(lowest, vector.num_devices, shape)
        takes = {name: partial(_seconds, name, env, shifts) for name, env in environments.items()}
        found[kind] = in_turn(takes, ROUNDS)
    return found


def _seconds(name: str, env: Any, shifts: Ints) -> Floats:
    """(steps,) seconds that one environment took for a step, if it is one that counts."""
    vector = isinstance(env, VectorEnv)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS if vector else 1)
    took = episode(env, shifts) / (NUM_ENVS if vector else 1)
    return took[::EVERY] if name == "reference" else took


def episode(env: Any, shifts: Ints) -> Floats:
    """(steps,) seconds that each step took at the beginning of an episode.

    `shifts`, (steps, num_envs), is added to the number of the current group's device; for one
    environment its first column.
    """
    vector = isinstance(env, VectorEnv)
    observation, info = env.reset(seed=0)
    start = np.atleast_2d(info["best_placement"])  # each group is visited once
    num_devices = observation["action_mask"].shape[-1]
    rows = np.arange(len(start))
    took = np.empty(len(shifts))
    for step, shift in enumerate(shifts[:, : len(start)]):
        present = start[rows, np.atleast_1d(observation["current_node"])]
        devices = (present + shift) % num_devices
        action = devices if vector else int(devices[0])
        began = time.perf_counter()
        observation, *_ = env.step(action)
        took[step] = time.perf_counter() - began
    return took
