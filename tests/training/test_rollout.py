import gymnasium as gym
import numpy as np
import pytest

import placeto
from placeto.features import static_features
from placeto.models import PlacetoPolicy, PolicyConfig, structure
from placeto.simulation import simulate, simulate_many
from placeto.training import TrainingConfig
from placeto.training.rollout import roll_out


@pytest.mark.parametrize("reward", ["improvement", "terminal"])
@pytest.mark.parametrize("initial", ["first", "random"])
def test_episodes_are_those_of_the_environment(reward, initial):
    graph = placeto.load_graph("nmt")
    problem = placeto.PlacementProblem(graph, placeto.load_cluster("k80x4"), 20)
    config = TrainingConfig(reward=reward, initial_placement=initial, sweeps=2, keep=0.5)
    rollout = roll_out(
        problem,
        static_features(problem),
        structure(problem),
        PlacetoPolicy(PolicyConfig(num_devices=4, keep=0.5)),
        config,
        simulate_many,
        np.random.default_rng(3),
        episodes=4,
    )
    env = gym.make(
        "DevicePlacement-v0", graph=graph, cluster="k80x4", grouping=20, reward=reward, sweeps=2
    )
    for episode in range(4):
        start = rollout.features[0, episode, :, 6:10].argmax(axis=1)
        observation, info = env.reset(seed=0, options={"placement": start})
        best = info["step_time"]
        for step in range(40):
            np.testing.assert_array_equal(
                observation["node_features"], rollout.features[step, episode]
            )
            observation, got, _, _, info = env.step(rollout.actions[step, episode])
            assert got == pytest.approx(rollout.rewards[step, episode], abs=1e-15)
            best = min(best, info["step_time"])
        assert info["step_time"] == rollout.step_time[episode]
        assert best == rollout.best_cost[episode]


def test_every_evaluated_placement_is_visited():
    problem = placeto.PlacementProblem(placeto.load_graph("nmt"), placeto.load_cluster("k80x2"), 12)
    seen = []
    rollout = roll_out(
        problem,
        static_features(problem),
        structure(problem),
        PlacetoPolicy(PolicyConfig(num_devices=2, keep=0.0)),
        TrainingConfig(),
        simulate_many,
        np.random.default_rng(0),
        episodes=3,
        visit=lambda devices, outcomes: seen.extend(
            zip(devices.tolist(), outcomes.step_time.tolist(), strict=True)
        ),
    )
    for devices, step_time in seen:
        assert simulate(problem, devices).step_time == step_time
    assert rollout.devices[0].tolist() in [devices for devices, _ in seen]
    starts = 3
    moves = (rollout.features[:, :, :, 4:6].argmax(axis=3).transpose(1, 0, 2)[:, 1:] != 0).any()
    assert moves
    assert len(seen) > starts
