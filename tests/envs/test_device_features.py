"""What the environment shows of each device is what the agent sees, step by step."""

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.envs import DevicePlacementEnv, DevicePlacementVectorEnv, generator
from placeto.envs.features.devices import (
    DEVICE_FEATURES,
    device_feature_names,
    observe_devices,
)
from placeto.envs.features.pairs import PAIR_FEATURES
from placeto.envs.specification import compile_all
from placeto.heuristics.initial import random_placement
from placeto.models.placeto.play import play
from placeto.simulation import simulate_many
from tests.models.placeto.pairs import drawn_policy

PROBLEMS = {
    "diamond": generator.diamond(),
    "unequal": generator.unequal(),
    "nmt": PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24),
}


def slower(problem, many):
    """An evaluator of its own: what the simulator says, and a second."""
    found = simulate_many(problem, many)
    found.step_time[:] += 1
    return found


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("evaluator", ["simulate", slower])
def test_it_is_what_the_agent_sees(name, evaluator):
    problem, rng = PROBLEMS[name], np.random.default_rng(7)
    start, wanted = (random_placement(problem, rng) for _ in range(2))
    # What is done does not depend on the policy: each group goes where it is wanted.
    noise = np.zeros((2 * problem.num_groups, 1, problem.num_devices))
    played = play(
        problem, drawn_policy().guide(problem), start[None], noise, memory_penalty=2.0,
        forced=wanted[None],
    )  # fmt: skip
    env = DevicePlacementEnv(
        problem.graph, problem.cluster, problem.op_group, sweeps=2, evaluator=evaluator
    )
    observation, _ = env.reset(seed=0, options={"placement": start})
    terminated = False
    for step in range(2 * problem.num_groups):
        assert not terminated
        seen = observation["device_features"]
        assert observation["current_node"] == played.current[step]
        assert (seen[:, :PAIR_FEATURES] == played.pairs[step, 0, :, :PAIR_FEATURES]).all()
        assert (seen[:, PAIR_FEATURES:] == played.groups[step, 0]).all()
        observation, _, terminated, _, _ = env.step(wanted[played.current[step]])
    assert terminated
    assert len(device_feature_names()) == DEVICE_FEATURES == seen.shape[1]


def test_many_side_by_side_see_what_each_sees_alone():
    problem, rng = PROBLEMS["nmt"], np.random.default_rng(3)
    options = {"cluster": problem.cluster, "grouping": problem.op_group}
    many = DevicePlacementVectorEnv(3, problem.graph, **options, initial_placement="random")
    alone = [
        DevicePlacementEnv(problem.graph, **options, initial_placement="random") for _ in range(3)
    ]
    seen = many.reset(seed=5)[0]["device_features"]
    for row, env in enumerate(alone):
        assert (env.reset(seed=5 + row)[0]["device_features"] == seen[row]).all()
    for _ in range(problem.num_groups):
        actions = rng.integers(problem.num_devices, size=3)
        seen = many.step(actions)[0]["device_features"]
        for row, env in enumerate(alone):
            assert (env.step(int(actions[row]))[0]["device_features"] == seen[row]).all()
    assert len({tuple(map(tuple, rows)) for rows in seen.tolist()}) == 3


def test_what_is_compiled_beside_is_what_an_environment_calls(capsys):
    compile_all()
    assert capsys.readouterr().out.split() == ["groups", "features"]
    env = DevicePlacementEnv("nmt_small", "k80x2", 5)
    env.reset(seed=0)
    env.step(1)
    assert len(observe_devices.signatures) == 1
