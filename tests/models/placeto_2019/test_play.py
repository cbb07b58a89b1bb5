import math

import gymnasium as gym
import numpy as np
import pytest
import torch

import placeto
from placeto.envs import generator
from placeto.models.agent import Wanted
from placeto.models.placeto_2019.agent import Placeto2019Agent
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.simulation import simulate, simulate_many


def agent_of(problem, **settings):
    return Placeto2019Agent([problem], Placeto2019Config(**settings), simulate_many)


@pytest.mark.parametrize("reward", ["improvement", "terminal"])
@pytest.mark.parametrize("initial", ["first", "random"])
def test_episodes_are_those_of_the_environment(reward, initial):
    graph = placeto.load_graph("nmt")
    problem = placeto.PlacementProblem(graph, placeto.load_cluster("k80x4"), 20)
    agent = agent_of(problem, reward=reward, initial_placement=initial, sweeps=2, keep=0.5)
    rollout = agent.roll_out(Wanted(0, 4), np.random.default_rng(3))
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
    batches = []
    agent = agent_of(problem, keep=0.0)
    agent._lockstep(0, 5)
    rollout = agent.roll_out(
        Wanted(0, 3), np.random.default_rng(0), lambda *batch: batches.append(batch)
    )
    # They are read when all is over: what was told does not change with the episodes.
    seen = [
        (devices, step_time)
        for many, outcomes in batches
        for devices, step_time in zip(many.tolist(), outcomes.step_time.tolist(), strict=True)
    ]
    for devices, step_time in seen:
        assert simulate(problem, devices).step_time == step_time
    assert rollout.devices[0].tolist() in [devices for devices, _ in seen]
    starts = 3
    moves = (rollout.features[:, :, :, 4:6].argmax(axis=3).transpose(1, 0, 2)[:, 1:] != 0).any()
    assert moves
    assert len(seen) > starts


def test_rows_beyond_the_episodes_stay_as_they_are():
    problem = generator.diamond()
    agent = agent_of(problem, initial_placement="random", keep=0.0)
    four = agent._lockstep(0, 4)
    others = [[0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 1, 1]]
    rng = np.random.default_rng(0)
    for row, placement in zip((2, 3), others, strict=True):
        four.begin(np.array([row]), four.starts.draw([rng], {"placement": placement}))
    rollout = agent.roll_out(Wanted(0, 2), np.random.default_rng(0))
    devices, outcomes = four.evaluated(np.arange(4))
    assert rollout.devices.tolist() == devices[:2].tolist()
    assert devices[2:].tolist() == others
    for row in range(4):
        assert outcomes.step_time[row] == simulate(problem, devices[row]).step_time


@pytest.mark.parametrize("traversal", ["topological", "random"])
def test_every_sweep_goes_through_all_groups_in_the_order_told(traversal):
    problem = placeto.PlacementProblem(placeto.load_graph("nmt"), placeto.load_cluster("k80x2"), 12)
    agent = agent_of(problem, traversal=traversal, sweeps=2)
    rollout = agent.roll_out(Wanted(0, 4), np.random.default_rng(0))
    orders = [
        tuple(order) for order in rollout.current.reshape(2, 12, 4).swapaxes(1, 2).reshape(8, 12)
    ]
    assert all(sorted(order) == list(range(12)) for order in orders)
    if traversal == "topological":
        assert set(orders) == {tuple(problem.group_order)}
    else:
        assert len(set(orders)) == 8


def test_forbidden_devices_are_not_chosen_whatever_the_logits():
    toy = generator.diamond()
    pins = {0: 1, 2: 0, 5: 1}
    problem = placeto.PlacementProblem(toy.graph, toy.cluster, "none", pins=pins)
    agent = agent_of(problem, initial_placement="random")
    torch.nn.init.constant_(agent.network.keep, math.nan)
    rollout = agent.roll_out(Wanted(0, 3), np.random.default_rng(0))
    for group, device in pins.items():
        assert (rollout.devices[:, group] == device).all()
