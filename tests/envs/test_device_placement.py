import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import placeto
from placeto.cluster import Channel, Cluster, Device
from placeto.envs import generator
from placeto.envs.features import node_features, static_features
from placeto.simulation import simulate, simulate_many
from tests.builders import make_cluster, make_graph, make_pipelined


def make(problem, **options):
    return gym.make(
        "DevicePlacement-v0",
        graph=problem.graph,
        cluster=problem.cluster,
        grouping="none",
        **options,
    )


def play(env, seed, options=None):
    """Random actions; what happened, as (rewards, observations, infos)."""
    observation, info = env.reset(seed=seed, options=options)
    env.action_space.seed(seed)
    rewards, observations, infos = [], [observation], [info]
    terminated = False
    while not terminated:
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert not truncated
        rewards.append(reward)
        observations.append(observation)
        infos.append(info)
    return rewards, observations, infos


@pytest.mark.parametrize("reward", ["improvement", "terminal"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"graph": ["inception_v3", "nmt"], "cluster": "k80x2"},
        {"initial_placement": "random", "sweeps": 2, "traversal": "random"},
        {"render_mode": "rgb_array", "reward_scale": "seconds"},
        {"render_mode": "ansi"},
    ],
)
def test_check_env_has_no_complaints(reward, options):
    env = gym.make("DevicePlacement-v0", reward=reward, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_steps_are_simulated_in_the_order_asked_for():
    problem, seconds = make_pipelined(), {}
    for order in ("fifo", "gpipe", "1f1b"):
        env = make(problem, order=order, initial_placement=np.array([0, 1, 1, 0]))
        seconds[order] = env.reset(seed=0)[1]["step_time"]
    assert seconds == {"fifo": 17, "gpipe": 18, "1f1b": 15}  # as tests/placers/test_ordering.py


def test_every_registered_id_is_checked_above():
    ours = [name for name, spec in gym.registry.items() if "placeto" in str(spec.entry_point)]
    assert ours == ["DevicePlacement-v0"]


@pytest.mark.parametrize("scale", ["seconds", "relative"])
@pytest.mark.parametrize("graph", ["inception_v3", "nmt"])
def test_rewards_add_up_to_the_fall_in_step_time(scale, graph):
    env = gym.make("DevicePlacement-v0", graph=graph, reward_scale=scale)
    rewards, _, infos = play(env, seed=3)
    first, last = infos[0]["step_time"], infos[-1]["step_time"]
    fall = (first - last) / (first if scale == "relative" else 1)
    assert len(rewards) == env.unwrapped.problem.num_groups
    assert sum(rewards) == pytest.approx(fall, rel=1e-9)


def test_terminal_reward_is_minus_the_last_step_time():
    env = make(generator.diamond(), reward="terminal", reward_scale="seconds")
    rewards, _, infos = play(env, seed=1)
    assert rewards[:-1] == [0.0] * 5
    assert rewards[-1] == -infos[-1]["step_time"]


def test_each_reward_is_what_the_step_changed():
    problem = generator.diamond()
    env = make(problem, reward_scale="seconds")
    env.reset(seed=0)
    devices = np.zeros(6, dtype=int)
    for group, device in enumerate([0, 1, 1, 0, 0, 1]):
        before = simulate(problem, devices).step_time
        devices[group] = device
        after = simulate(problem, devices).step_time
        _, reward, _, _, info = env.step(device)
        assert reward == before - after
        assert info["step_time"] == after


def test_memory_over_the_limit_costs_seconds_a_gibibyte():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 2**30, "b": 2**30})
    env = gym.make(
        "DevicePlacement-v0",
        graph=graph,
        cluster=make_cluster(2, memory=2**30),
        grouping="none",
        memory_penalty=5.0,
        reward_scale="seconds",
    )
    _, info = env.reset(seed=0)
    assert not info["feasible"]
    assert info["peak_memory"].tolist() == [2**31, 0]
    _, reward, *_ = env.step(1)
    # From 2 s and one GiB too much to 1 s and none.
    assert reward == pytest.approx(1.0 + 5.0)


def test_the_best_placement_is_that_of_the_least_penalised_time():
    gib = 2**30
    graph = make_graph({"a": 1.0, "b": 2.0, "c": 1.0}, param_bytes={"a": 2 * gib, "c": 2 * gib})
    env = gym.make(
        "DevicePlacement-v0",
        graph=graph,
        cluster=make_cluster(2, memory=3 * gib),
        grouping="none",
        memory_penalty=5.0,
    )
    env.reset(seed=0)
    env.step(0)
    # a and c together, one GiB too much, and b elsewhere: 2 s. With c beside b: 3 s, and it fits.
    *_, over = env.step(1)
    assert over["best_step_time"] == over["step_time"] == pytest.approx(2.0)
    *_, fits = env.step(1)
    assert fits["best_step_time"] == fits["step_time"] == pytest.approx(3.0)
    assert fits["best_placement"].tolist() == [0, 1, 1]


def test_same_seed_same_episode():
    env = gym.make(
        "DevicePlacement-v0",
        graph=["inception_v3", "nmt"],
        initial_placement="random",
        traversal="random",
    )
    first, second, other = (play(env, seed) for seed in (5, 5, 6))
    assert first[0] == second[0]
    for before, after in zip(first[1], second[1], strict=True):
        for key in before:
            np.testing.assert_array_equal(before[key], after[key])
    assert first[0] != other[0]


def test_observation_is_the_features_of_the_simulated_state():
    problem = placeto.PlacementProblem(placeto.load_graph("nmt"), placeto.load_cluster("k80x4"), 64)
    env = gym.make("DevicePlacement-v0", graph=["inception_v3", "nmt"])
    observation, _ = env.reset(seed=0, options={"graph": "nmt"})
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    visited = np.zeros(problem.num_groups, dtype=bool)
    for step in range(20):
        current = problem.group_order[step]
        outcomes = simulate_many(problem, devices[None])
        expected = node_features(
            static_features(problem),
            devices[None],
            outcomes.group_start,
            outcomes.step_time,
            np.array([current]),
            visited[None],
        )[0]
        groups = problem.num_groups
        np.testing.assert_array_equal(observation["node_features"][:groups], expected)
        assert not observation["node_features"][groups:].any()
        assert observation["current_node"] == current
        assert observation["node_mask"].sum() == groups
        edges = observation["edge_mask"] == 1
        np.testing.assert_array_equal(
            observation["edge_index"][:, edges], np.stack(problem.group_edges[:2])
        )
        devices[current] = step % 4
        visited[current] = True
        observation, *_ = env.step(step % 4)


def test_nothing_is_left_of_an_earlier_graph():
    chain, diamond = generator.chain(), generator.diamond()
    used, unused = (
        gym.make(
            "DevicePlacement-v0",
            graph=[chain.graph, diamond.graph],
            cluster=chain.cluster,
            grouping="none",
        )
        for _ in range(2)
    )
    play(used, seed=0, options={"graph": "diamond", "placement": [0, 1, 0, 1, 0, 1]})
    found, expected = (play(env, seed=1, options={"graph": "chain"}) for env in (used, unused))
    assert found[0] == expected[0]
    for kind in (1, 2):
        for one, other in zip(found[kind], expected[kind], strict=True):
            for key, value in other.items():
                np.testing.assert_array_equal(one[key], value)


def test_best_placement_is_the_best_seen():
    problem = generator.diamond()
    env = make(problem)
    _, _, infos = play(env, seed=2)
    assert infos[-1]["best_step_time"] == min(info["step_time"] for info in infos)
    best = simulate(problem, infos[-1]["best_placement"])
    assert best.step_time == infos[-1]["best_step_time"]


def test_a_forbidden_action_changes_nothing():
    graph = placeto.ComputationGraph(
        name="picky",
        op_names=["a", "b"],
        op_types=["Op", "Op"],
        op_seconds={"x": np.array([1.0, 1.0]), "y": np.array([2.0, np.inf])},
        tensor_producer=np.array([0]),
        tensor_bytes=np.array([8]),
        edge_tensor=np.array([0]),
        edge_consumer=np.array([1]),
    )
    cluster = Cluster(
        "two kinds",
        (Device("fast", "x", 100), Device("slow", "y", 100)),
        (Channel("there", ("fast",), ("slow",), 1.0), Channel("back", ("slow",), ("fast",), 1.0)),
    )
    env = gym.make("DevicePlacement-v0", graph=graph, cluster=cluster, grouping="none")
    observation, _ = env.reset(seed=0)
    assert observation["action_mask"].tolist() == [1, 1]
    observation, *_ = env.step(0)
    assert observation["action_mask"].tolist() == [1, 0]
    assert env.unwrapped.action_masks().tolist() == [True, False]
    _, reward, terminated, _, info = env.step(1)
    assert (reward, terminated, info["step_time"]) == (0.0, True, 2.0)


def test_reset_options_pick_graph_and_placement():
    env = gym.make("DevicePlacement-v0", graph=["inception_v3", "nmt"])
    groups = env.unwrapped.problems["nmt"].num_groups
    start = np.arange(groups) % 4
    observation, info = env.reset(seed=0, options={"graph": "nmt", "placement": start})
    assert info["graph"] == "nmt"
    on = observation["node_features"][:groups, 6:10]
    np.testing.assert_array_equal(on.argmax(axis=1), start)


def test_the_best_placement_can_be_started_from_padding_and_all():
    problems = [generator.chain(), generator.fork()]
    env = make(problems[0], max_groups=9)
    env.reset(seed=0)
    for device in (1, 0, 1, 0):
        *_, info = env.step(device)
    assert len(info["best_placement"]) == 9
    _, again = env.reset(options={"placement": info["best_placement"]})
    assert again["step_time"] == info["best_step_time"]


def test_sweeps_lengthen_the_episode():
    rewards, observations, _ = play(make(generator.fork(), sweeps=3), seed=0)
    assert len(rewards) == 12
    assert [int(o["current_node"]) for o in observations] == [0, 1, 2, 3] * 3 + [3]


def test_own_evaluator_is_asked():
    problem = generator.fork()
    asked = []

    def twice_as_slow(problem, many):
        asked.append(many.copy())
        outcomes = simulate_many(problem, many)
        return type(outcomes)(
            outcomes.step_time * 2,
            outcomes.peak_memory,
            outcomes.group_start * 2,
            outcomes.feasible,
        )

    env = make(problem, evaluator=twice_as_slow)
    _, info = env.reset(seed=0)
    assert info["step_time"] == pytest.approx(80e-3)
    env.step(0)
    assert len(asked) == 1, "an action that keeps the device is not evaluated again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "speed"}, "reward is 'speed'"),
        ({"graph": []}, "empty list"),
        ({"graph": "inception"}, "bundled graphs: "),
        ({"cluster": "k80x3"}, "no such file, and no bundled name"),
        ({"sweeps": 0}, "sweeps is 0"),
        ({"sweeps": True}, "sweeps is True"),
        ({"initial_placement": "best"}, "initial_placement is 'best', expected one of first"),
        ({"initial_placement": [0, 1]}, "placement has shape"),
        ({"initial_placement": None}, "placement has shape"),
        ({"max_edges": 1e6}, "max_edges is 1000000.0, expected a whole number"),
        ({"memory_penalty": -1}, "memory_penalty is -1"),
        ({"max_groups": 3}, "the largest graph needs"),
        ({"evaluator": "guess"}, "evaluator is 'guess'"),
        ({"graph": ["nmt", "nmt"]}, "two graphs are called 'nmt'"),
        ({"render_mode": "human"}, "render_mode"),
    ],
)
def test_bad_arguments_are_one_line(options, message):
    with pytest.raises(placeto.PlacetoError, match=message) as caught:
        placeto.envs.DevicePlacementEnv(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "action", [-1, 2, 1.0, 1.7, np.float32(1), "1", None, np.array([1]), np.nan]
)
def test_actions_that_are_no_devices(action):
    env = make(generator.fork())
    env.reset(seed=0)
    with pytest.raises(placeto.PlacetoError, match="expected a device from 0 to 1"):
        env.step(action)
    env.step(np.array(1))


def test_pictures_show_what_is_busy():
    problem = generator.fork()
    env = make(problem, render_mode="rgb_array")
    env.reset(seed=0, options={"placement": [0, 0, 0, 1]})
    picture = env.render()
    assert picture.shape == (64, 640, 3)
    # 30 ms in all: device 0 is busy throughout, device 1 from 11 to 21 ms.
    busy = (picture[10] != 255).any(axis=1), (picture[42] != 255).any(axis=1)
    assert busy[0].all()
    first, last = busy[1].nonzero()[0][[0, -1]]
    assert (first, last) == (640 * 11 // 30, 640 * 21 // 30 - 1)
    text = make(problem, render_mode="ansi")
    text.reset(seed=0, options={"placement": [0, 0, 0, 1]})
    assert "step time 30 ms" in text.render()
    assert text.render().count("█" * 18) == 4


def test_a_copy_goes_on_in_another_process(tmp_path):
    """Where the code of the simulator is elsewhere."""
    env = gym.make("DevicePlacement-v0", graph="nmt_small", cluster="k80x2", grouping=8)
    env.reset(seed=0)
    env.step(1)
    copy = tmp_path / "env.pickle"
    copy.write_bytes(pickle.dumps(env))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).step(1)[1])"
    run = [sys.executable, "-c", code, str(copy)]
    shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert float(shown) == env.step(1)[1]
