import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import placeto
from placeto.envs import DevicePlacementEnv, DevicePlacementVectorEnv, generator
from placeto.simulation import simulate_many
from tests.envs.side_by_side import assert_same, native, synchronous, toys

OPTIONS = [
    {},
    {"initial_placement": "random", "traversal": "random", "reward_scale": "seconds"},
    {"reward": "terminal", "sweeps": 2, "max_groups": 9, "max_edges": 11},
    {"max_episode_steps": 3},
    {"max_episode_steps": 4, "initial_placement": "random"},
]


def steps(env, count, mode, rng):
    """Random actions for `count` steps; resets what has ended if the environment does not."""
    num_devices = env.single_action_space.n
    over = np.zeros(env.num_envs, dtype=bool)
    for _ in range(count):
        actions = rng.integers(num_devices, size=env.num_envs)
        if mode is AutoresetMode.NEXT_STEP:
            actions[over] = 99  # the action of an environment that is reset is ignored
        result = env.step(actions)
        yield result
        over = result[2] | result[3]
        if mode is AutoresetMode.DISABLED and over.any():
            yield env.reset(options={"reset_mask": over})


def assert_same_episodes(num_envs, count, mode, **options):
    results = []
    for make in (native, synchronous):
        env = make(num_envs, mode, **options)
        found = [env.reset(seed=4), *steps(env, count, mode, np.random.default_rng(0))]
        results.append([*found, env.reset(), env.step(np.zeros(num_envs, dtype=int))])
    for step, (found, expected) in enumerate(zip(*results, strict=True)):
        assert_same(found, expected, f"result {step}")
    return results[0]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("options", OPTIONS)
def test_is_the_single_environments_side_by_side(mode, options):
    results = assert_same_episodes(5, 40, mode, **toys(), **options)
    graphs = {name for *_, infos in results for name in infos["graph"] if name}
    assert graphs == {"chain", "diamond", "fork"}
    ends = sum((result[2] | result[3]).sum() for result in results if len(result) == 5)
    assert ends >= 5
    assert any(result[3].any() for result in results if len(result) == 5) == (
        "max_episode_steps" in options
    )


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_real_graphs_are_the_single_environments_side_by_side(mode):
    options = {"graph": ["inception_v3", "nmt"], "cluster": "k80x4", "grouping": 40}
    results = assert_same_episodes(3, 100, mode, **options, initial_placement="random")
    edges = results[0][0]["edge_mask"].sum(axis=1)
    assert len(set(edges.tolist())) == 2, "both graphs are there, of different sizes"


def test_each_row_is_the_single_environment_seeded_alike():
    seeds = [11, 3, 11]
    env = native(3, **toys(), initial_placement="random")
    observations, _ = env.reset(seed=seeds)
    assert env.np_random_seed == tuple(seeds)
    for row, seed in enumerate(seeds):
        single = DevicePlacementEnv(**toys(), initial_placement="random")
        expected, _ = single.reset(seed=seed)
        for key, value in expected.items():
            np.testing.assert_array_equal(observations[key][row], value)
        draws = [rng.bit_generator.state for rng in (env.np_random[row], single.np_random)]
        assert draws[0] == draws[1]


@pytest.mark.parametrize("seed", [None, 8, [5, None, 8], [None, 5, 8]])
def test_seeds_are_those_of_gymnasium(seed):
    found = []
    for make in (native, synchronous):
        env = make(3, **toys(), initial_placement="random")
        found.append((env.reset(seed=2), env.reset(seed=seed), env.np_random_seed))
    assert_same(*found)


def test_reset_options_are_for_every_environment_of_the_mask():
    start = np.array([1, 0, 1, 0])
    mask = np.array([False, True, True])
    options = {"graph": "fork", "placement": start, "reset_mask": mask}
    found = []
    for make in (native, synchronous):
        env = make(3, **toys())
        env.reset(seed=0, options={"graph": "diamond"})
        env.step(np.array([1, 1, 1]))
        found.append((env.reset(options=options.copy()), env.step(np.array([1, 1, 0]))))
    assert_same(*found)
    (observations, infos), _ = found[0]
    assert infos["graph"].tolist() == [None, "fork", "fork"]
    assert observations["node_mask"].sum(axis=1).tolist() == [6, 4, 4]


def test_make_vec_takes_it_by_itself():
    env = gym.make_vec("placeto:DevicePlacement-v0", num_envs=3, graph="nmt", cluster="k80x2")
    assert type(env) is DevicePlacementVectorEnv
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert native(1, "SameStep").metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, _ = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    again = gym.make_vec(env.spec)
    assert (again.num_envs, again.observation_space) == (3, env.observation_space)


def test_spaces_and_pictures_are_those_of_gymnasium():
    envs = [make(2, **toys(), render_mode="ansi") for make in (native, synchronous)]
    for env in envs:
        env.reset(seed=1)
        env.step(np.array([1, 0]))
    for name in ("observation_space", "action_space", "single_observation_space", "render_mode"):
        assert getattr(envs[0], name) == getattr(envs[1], name)
    pictures = envs[0].render()
    assert pictures == envs[1].render()
    assert len({*pictures}) == 2


def test_action_masks_are_those_of_the_current_groups():
    env = native(2, **toys())
    env.reset(seed=0, options={"graph": "chain"})
    assert env.action_masks().tolist() == [[True, True], [True, True]]
    env.step(np.array([0, 1]))
    observations, *_ = env.step(np.array([0, 1]))
    assert observations["current_node"].tolist() == [2, 2]
    assert env.action_masks().tolist() == [[False, True], [False, True]]


def test_a_step_asks_the_evaluator_once_a_problem():
    asked = []

    def evaluate(problem, many):
        asked.append((problem.graph.name, len(many)))
        return simulate_many(problem, many)

    env = native(16, **toys(), evaluator=evaluate)
    _, infos = env.reset(seed=0)
    assert sorted(name for name, _ in asked) == ["chain", "diamond", "fork"]
    for count in (16, 0):
        asked.clear()
        env.step(np.ones(16, dtype=int) if count else infos["best_placement"][:, 1])
        assert sum(n for _, n in asked) == count
        assert len(asked) == len({name for name, _ in asked})
        infos["best_placement"][:, 1] = 0


FORKED = """
import gymnasium as gym
import numpy as np
import placeto

if __name__ == "__main__":
    options = {"graph": "nmt_small", "cluster": "k80x2", "initial_placement": "random"}
    here = gym.make_vec("DevicePlacement-v0", num_envs=2, **options)
    here.reset(seed=1)
    there = gym.make_vec(
        "DevicePlacement-v0", num_envs=2, vectorization_mode="async",
        vector_kwargs={"context": "fork"}, **options,
    )
    there.reset(seed=1)
    for _ in range(5):
        actions = np.array([0, 1])
        found, expected = there.step(actions), here.step(actions)
        assert (found[1] == expected[1]).all()
        assert (found[4]["step_time"] == expected[4]["step_time"]).all()
    there.close()
"""


def test_forked_processes_step_where_their_parent_has_simulated_over_all_cores(tmp_path):
    path = tmp_path / "forked.py"
    path.write_text(FORKED)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", path], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", AutoresetMode)
def test_wrappers_of_gymnasium_see_whole_episodes(mode):
    env = RecordEpisodeStatistics(native(3, mode, **toys(), reward_scale="seconds"))
    env.reset(seed=0)
    gain = np.zeros(3)
    lengths = []
    for _, rewards, terminated, _, infos in steps(env, 6, mode, np.random.default_rng(1)):
        gain += rewards
        for row in np.flatnonzero(terminated):
            assert infos["episode"]["r"][row] == pytest.approx(gain[row])
            lengths.append(int(infos["episode"]["l"][row]))
        if terminated.any():
            break
    assert set(lengths) == {4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"num_envs": 2.0}, "num_envs is 2.0"),
        ({"num_envs": 2, "max_episode_steps": 0}, "max_episode_steps is 0"),
        ({"num_envs": 2, "autoreset_mode": "Never"}, "expected one of NextStep, SameStep"),
        ({"num_envs": 2, "reward": "speed"}, "reward is 'speed'"),
    ],
)
def test_bad_arguments_are_one_line(options, message):
    with pytest.raises(placeto.PlacetoError, match=message) as caught:
        DevicePlacementVectorEnv(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([1, 1], r"shape \(2,\), expected \(3,\)"),
        ([[1, 1, 1]], r"shape \(1, 3\)"),
        ([1.0, 1.0, 1.0], "float64 values"),
        ([[1], [1, 1], 1], "not an array"),
        ([0, 2, 0], "action of environment 1 is 2, expected a device from 0 to 1"),
        ([0, 0, -1], "action of environment 2 is -1"),
    ],
)
def test_bad_actions_are_one_line_and_move_nothing(actions, message):
    env, twin = (native(3, **toys()) for _ in range(2))
    env.reset(seed=0)
    twin.reset(seed=0)
    with pytest.raises(placeto.PlacetoError, match=message) as caught:
        env.step(actions)
    assert "\n" not in str(caught.value)
    assert_same(env.step(np.array([1, 1, 1])), twin.step(np.array([1, 1, 1])))


def test_the_last_step_of_a_same_step_episode_is_in_the_finals():
    problem = generator.chain()
    arguments = {"graph": problem.graph, "cluster": problem.cluster, "grouping": "none"}
    env = native(2, AutoresetMode.SAME_STEP, **arguments)
    env.reset(seed=0)
    for _ in range(4):
        observations, _, terminated, _, infos = env.step(np.array([0, 1]))
    assert terminated.all()
    # Four ops on one device take 40 ms, whichever it is.
    assert infos["final_info"]["step_time"] == pytest.approx([40e-3, 40e-3])
    assert infos["final_info"]["best_placement"].tolist() == [[0] * 4, [0] * 4]
    assert infos["final_obs"][1]["node_features"][:, 4:6].argmax(axis=1).tolist() == [1] * 4
    assert observations["node_features"][1, :, 4:6].argmax(axis=1).tolist() == [0] * 4
    assert observations["current_node"].tolist() == [0, 0]
