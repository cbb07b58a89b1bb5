import gymnasium as gym
import numpy as np
import pytest
import torch

import placeto
from placeto.envs import generator
from placeto.models.placeto_2019.network import GraphReader, Placeto2019Shape
from placeto.models.placeto_2019.observed import ObservedPolicy, read_observations
from placeto.models.placeto_2019.structure import structure, structure_of_edges


def tensors(observation):
    return {key: torch.as_tensor(part) for key, part in observation.items()}


def make(graph, **more):
    return gym.make("DevicePlacement-v0", graph=graph, cluster="k80x2", grouping=10, **more)


def after(env, actions, **options):
    observation, _ = env.reset(seed=0, options=options)
    for action in actions:
        observation, *_ = env.step(action)
    return tensors(observation)


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return ObservedPolicy(Placeto2019Shape(num_devices=2, rounds=2)).eval()


@pytest.mark.parametrize("graph", ["nmt", "inception_v3"])
@pytest.mark.parametrize("passing", ["rounds", "sweep"])
def test_logits_are_those_of_the_policy_that_knows_the_problem(graph, passing):
    policy = ObservedPolicy(Placeto2019Shape(num_devices=2, passing=passing, rounds=2))
    env = make(graph)
    seen = after(env, [1, 0, 1])
    problem = env.unwrapped.problem
    assert len(problem.dag_edges[0]) < len(problem.group_edges[0])  # there are cycles
    logits, value = policy(seen)
    known = policy.policy(
        seen["node_features"][None], seen["current_node"][None], structure(problem)
    )
    torch.testing.assert_close(logits, known[0])
    assert logits.shape == (2,)
    assert value.shape == ()


def test_structure_without_cycles_is_the_problems_whatever_the_numbers():
    problem = generator.diamond()
    order = np.array([4, 2, 0, 5, 1, 3])
    other = placeto.PlacementProblem(problem.graph, problem.cluster, grouping=order)
    source, target, _ = other.group_edges
    read, known = structure_of_edges(6, source, target), structure(other)
    torch.testing.assert_close(read.relatives, known.relatives)
    for part in ("senders", "first", "weights"):
        torch.testing.assert_close(getattr(read.links, part), getattr(known.links, part))


def test_padding_changes_nothing(policy):
    narrow = after(make("nmt"), [1, 0, 1, 1])
    wide = after(make("nmt", max_groups=17, max_edges=61), [1, 0, 1, 1])
    assert wide["node_features"].shape[0] == 17
    torch.testing.assert_close(policy(wide), policy(narrow))


def test_batch_of_several_graphs_is_its_members(policy):
    env = make(["nmt", "inception_v3", "rnnlm"])
    states = [
        after(env, actions, graph=graph)
        for graph, actions in [("nmt", [1]), ("rnnlm", [1, 1, 0]), ("nmt", [0, 1]),
                               ("inception_v3", [1, 0, 1, 1]), ("rnnlm", [])]
    ]  # fmt: skip
    batch = {key: torch.stack([state[key] for state in states]) for key in states[0]}
    logits, values = policy(batch)
    assert len(torch.unique(logits, dim=0)) == 5
    for row, state in enumerate(states):
        torch.testing.assert_close((logits[row], values[row]), policy(state))
    two = {key: torch.stack([part, part.flip(0)]) for key, part in batch.items()}
    torch.testing.assert_close(policy(two)[0], torch.stack([logits, logits.flip(0)]))
    torch.testing.assert_close(policy(two)[1], torch.stack([values, values.flip(0)]))


def test_gradients_of_a_mixed_batch_are_those_of_its_members(policy):
    env = make(["nmt", "rnnlm"])
    states = [after(env, [1], graph="nmt"), after(env, [0, 1], graph="rnnlm")]
    reader = GraphReader(Placeto2019Shape(num_devices=2, rounds=2))
    batch = {key: torch.stack([state[key] for state in states]) for key in states[0]}
    read_observations(reader, batch).square().sum().backward()
    together = [part.grad.clone() for part in reader.parameters()]
    reader.zero_grad()
    sum(read_observations(reader, state).square().sum() for state in states).backward()
    torch.testing.assert_close(together, [part.grad for part in reader.parameters()])


def test_forbidden_devices_have_no_probability_and_count_nothing(policy):
    env = make("nmt", pins={1: 1})
    seen = after(env, [0])
    assert seen["action_mask"].tolist() == [0, 1]
    logits, _ = policy(seen)
    distribution = torch.distributions.Categorical(logits=logits)
    assert distribution.probs.tolist() == [0.0, 1.0]
    assert distribution.entropy().item() == 0.0


def test_zeros_which_libraries_try_first_are_no_trouble(policy):
    zeros = {key: torch.zeros_like(part)[None] for key, part in after(make("nmt"), []).items()}
    logits, value = policy(zeros)
    assert torch.isfinite(logits).all()
    assert torch.isfinite(value).all()
