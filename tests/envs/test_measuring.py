"""The environment with `evaluator="measure"`."""

import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from placeto import load_cluster
from placeto.envs import DevicePlacementEnv, DevicePlacementVectorEnv
from placeto.measurement import Effort, Measurement, MeasuringEvaluator, Runtime
from tests.envs.side_by_side import assert_same, native, synchronous
from tests.measurement.conftest import fitted, saved  # noqa: F401 (`saved` is a fixture)
from tests.measurement.pretend import pretend  # noqa: F401 (a fixture)

GROUPS = 6


def options(**more):
    return {
        "graph": "rnnlm",
        "cluster": fitted(load_cluster("local-2")),
        "grouping": GROUPS,
        "evaluator": "measure",
        **more,
    }


def nameless():
    """Devices that TensorFlow has no names of."""
    cluster = load_cluster("local-cpu")
    return replace(cluster, devices=(replace(cluster.devices[0], tensorflow=None),))


def balanced(devices):
    """Ten seconds, less one for each group on the second device; steps a second apart."""
    seconds = 10.0 - devices.sum()
    return Measurement((seconds - 1, seconds, seconds + 1))


def fails_when_mixed(devices):
    return balanced(devices) if len(set(devices)) == 1 else Measurement(reason="no memory")


def test_rewards_and_infos_are_of_measured_times(pretend):  # noqa: F811
    runs = pretend(balanced)
    env = gym.make("DevicePlacement-v0", **options(reward_scale="seconds"))
    _, info = env.reset(seed=0)
    assert info["step_time"] == 10.0
    assert info["interval"].tolist() == [9.0, 11.0]
    assert (info["steps_measured"], info["reason"], info["feasible"]) == (3, "", True)
    *_, info = env.step(0)
    assert len(runs) == 1, "what is known is not run again"
    observation, reward, *_, info = env.step(1)
    assert reward == 1.0
    assert info["step_time"] == 9.0
    assert info["interval"].tolist() == [8.0, 10.0]
    assert env.observation_space.contains(observation)
    assert [effort for _, effort in runs] == [Effort()] * 2
    env.reset(seed=1)
    assert len(runs) == 2
    env.close()


def test_check_env_has_no_complaints(pretend):  # noqa: F811
    pretend(balanced)
    env = gym.make("DevicePlacement-v0", **options())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_a_placement_that_fails_has_a_finite_reward(pretend):  # noqa: F811
    runs = pretend(fails_when_mixed)
    env = gym.make("DevicePlacement-v0", **options(reward_scale="seconds", memory_penalty=0.0))
    env.reset(seed=0)
    _, reward, *_, info = env.step(1)
    assert reward == 10.0 - 20.0
    assert (info["step_time"], info["feasible"], info["reason"]) == (20.0, False, "no memory")
    assert info["best_step_time"] == 10.0
    assert (info["steps_measured"], info["interval"].tolist()) == (0, [np.inf, np.inf])
    assert len(runs) == 3


@pytest.mark.parametrize("mode", AutoresetMode)
def test_many_are_the_single_environments_side_by_side(pretend, mode):  # noqa: F811
    runs = pretend(fails_when_mixed)
    results = []
    for make in (native, synchronous):
        runs.clear()
        env = make(3, mode, **options(memory_penalty=0.0))
        found = [env.reset(seed=3)]
        actions = [[1, 0, 1], [1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1], [1, 1, 0]]
        found += [
            env.step(np.array(row))
            for row in actions[: GROUPS if mode is AutoresetMode.DISABLED else 7]
        ]
        results.append(found)
        if make is native:
            again = {tuple(devices) for devices, _ in runs if len(set(devices)) == 2}
            assert len(runs) == len({tuple(devices) for devices, _ in runs}) + len(again)
        env.close()
    for found, expected in zip(*results, strict=True):
        assert_same(found, expected)


@pytest.fixture
def closed(monkeypatch):
    """What runtimes were closed."""
    seen = []
    monkeypatch.setattr(Runtime, "close", lambda runtime: seen.append(runtime))
    return seen


@pytest.mark.parametrize("make", [DevicePlacementEnv, DevicePlacementVectorEnv])
def test_close_ends_the_processes_of_its_own_evaluator_only(pretend, closed, make):  # noqa: F811
    pretend(balanced)
    env = make(**options())
    env.reset(seed=0)
    assert closed == []
    env.close()
    assert len(closed) == 1
    runtime = Runtime(options()["cluster"])
    evaluate = MeasuringEvaluator(runtime, Effort(steps=2))
    other = make(**options(evaluator=evaluate))
    _, info = other.reset(seed=0)
    assert np.ravel(info["steps_measured"]).tolist() == [3]
    other.close()
    assert runtime not in closed


def test_a_real_run(saved):  # noqa: F811
    step = saved("two_layers")
    env = gym.make(
        "DevicePlacement-v0",
        graph=step.path,
        cluster=fitted(load_cluster("local-cpu")),
        evaluator="measure",
        measure_options={"warm_up": 1, "steps": 3, "deadline_seconds": 120.0},
    )
    _, info = env.reset(seed=0)
    assert (info["feasible"], info["reason"], info["steps_measured"]) == (True, "", 3)
    low, high = info["interval"]
    assert 0 < low <= info["step_time"] <= high < 60
    runtime = env.unwrapped._made_of.measures._runtime
    assert len(runtime.process_ids) == 1
    env.close()
    assert runtime.process_ids == {}
