import itertools

import networkx as nx
import numpy as np
import pytest
import torch

import placeto
from placeto.envs import generator
from placeto.envs.features import node_features, static_features
from placeto.models.placeto_2019.network import Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.structure import structure
from placeto.simulation import simulate_many


def observe(problem, devices, current):
    outcomes = simulate_many(problem, devices)
    visited = np.zeros(devices.shape, dtype=bool)
    features = node_features(
        static_features(problem),
        devices,
        outcomes.group_start,
        outcomes.step_time,
        current,
        visited,
    )
    return torch.from_numpy(features), torch.from_numpy(current)


@pytest.fixture(scope="module")
def nmt():
    return placeto.PlacementProblem(
        placeto.load_graph("nmt"), placeto.load_cluster("k80x4"), "auto"
    )


@pytest.mark.parametrize("passing", ["rounds", "sweep", "none"])
@pytest.mark.parametrize("pooling", ["partition", "all"])
def test_batch_is_its_members(nmt, passing, pooling):
    config = Placeto2019Shape(num_devices=4, passing=passing, pooling=pooling, rounds=2)
    policy, graph = Placeto2019Policy(config), structure(nmt)
    devices = np.random.default_rng(0).integers(0, 4, (3, nmt.num_groups))
    features, current = observe(nmt, devices, np.array([0, 5, 90]))
    logits = policy(features, current, graph)
    assert logits.shape == (3, 4)
    assert len(torch.unique(logits, dim=0)) == 3
    for row in range(3):
        alone = policy(features[row : row + 1], current[row : row + 1], graph)
        torch.testing.assert_close(alone[0], logits[row])


@pytest.mark.parametrize("passing", ["rounds", "sweep"])
def test_renumbering_groups_changes_no_logit(passing):
    problem = generator.diamond()
    order = np.array([4, 2, 0, 5, 1, 3])  # group -> its new number
    other = placeto.PlacementProblem(problem.graph, problem.cluster, grouping=order)
    policy = Placeto2019Policy(Placeto2019Shape(num_devices=2, passing=passing, rounds=2))
    devices = np.array([[0, 1, 0, 1, 1, 0]])
    renumbered = np.empty_like(devices)
    renumbered[:, order] = devices
    features, current = observe(problem, devices, np.array([3]))
    there, at = observe(other, renumbered, order[[3]])
    torch.testing.assert_close(
        policy(there, at, structure(other)), policy(features, current, structure(problem))
    )


def test_structure_is_that_of_networkx(nmt):
    parent, child = nmt.dag_edges
    graph = nx.DiGraph(zip(parent.tolist(), child.tolist(), strict=True))
    graph.add_nodes_from(range(nmt.num_groups))
    assert nx.is_directed_acyclic_graph(graph)
    ancestors, descendants, parallel = structure(nmt).relatives
    for group in range(0, nmt.num_groups, 7):
        above, below = nx.ancestors(graph, group), nx.descendants(graph, group)
        assert set(ancestors[group].nonzero()[:, 0].tolist()) == above
        assert set(descendants[group].nonzero()[:, 0].tolist()) == below
        others = set(range(nmt.num_groups)) - above - below - {group}
        assert set(parallel[group].nonzero()[:, 0].tolist()) == others


def test_links_are_the_edges_both_ways(nmt):
    parent, child = (ends.tolist() for ends in nmt.dag_edges)
    groups, links = nmt.num_groups, structure(nmt).links
    ends = [*links.first.tolist(), len(links.senders)]
    heard_at_all = structure(nmt).heard.flatten()
    for hearer, (begin, end) in enumerate(itertools.pairwise(ends)):
        sources, targets = (parent, child) if hearer < groups else (child, parent)
        heard = {a for a, b in zip(sources, targets, strict=True) if b == hearer % groups}
        senders = links.senders[begin:end] - hearer // groups * groups
        assert set(senders.tolist()) == heard
        assert len(senders) == len(heard)
        assert heard_at_all[hearer] == bool(heard)


def test_messages_reach_the_current_group():
    problem = generator.diamond()
    config = Placeto2019Shape(num_devices=2, rounds=2, pooling="all")
    features, _ = observe(problem, np.zeros((1, 6), dtype=np.int64), np.array([5]))
    policy, graph = Placeto2019Policy(config), structure(problem)
    features.requires_grad_()
    embedding = policy.embed(features, graph)[5, 0, : config.width].sum()
    (gradient,) = torch.autograd.grad(embedding, features)
    touched = gradient[0].abs().sum(dim=-1) > 0
    # Down the graph, two rounds reach two edges back: 5 hears 2 and 4, and these 1 and 3.
    assert touched.tolist() == [False, True, True, True, True, True]


def told_apart(passing, pooling, pair):
    """Whether a policy tells two groups' features apart while it places group 1 of the diamond.

    The diamond is 0 -> 1 -> 2 -> 5 and 0 -> 3 -> 4 -> 5.
    """
    torch.manual_seed(0)
    policy = Placeto2019Policy(
        Placeto2019Shape(num_devices=2, passing=passing, pooling=pooling, rounds=2)
    )
    problem = generator.diamond()
    features, current = observe(problem, np.array([[0, 1, 0, 1, 1, 0]]), np.array([1]))
    features[0, [0, 2, 3, 4, 5], :4] = torch.rand(5, 4)
    swapped = features.clone()
    swapped[0, list(pair)] = features[0, list(pair[::-1])]
    graph = structure(problem)
    return not torch.allclose(
        policy(features, current, graph), policy(swapped, current, graph), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    ("pair", "relation"),
    [((2, 5), "both descendants"), ((3, 4), "both parallel"), ((0, 3), ""), ((2, 3), "")],
)
def test_without_messages_groups_are_heard_through_the_pools_alone(pair, relation):
    assert told_apart("rounds", "partition", pair)
    assert told_apart("sweep", "partition", pair)
    assert told_apart("none", "partition", pair) == (relation == "")
    assert not told_apart("none", "all", pair)
    assert told_apart("rounds", "all", pair)


def test_keep_raises_the_present_device_only():
    problem = generator.fork()
    plain = Placeto2019Policy(Placeto2019Shape(num_devices=2, keep=0.0))
    raised = Placeto2019Policy(Placeto2019Shape(num_devices=2, keep=2.5))
    raised.load_state_dict(plain.state_dict() | {"keep": raised.keep.detach()})
    features, current = observe(problem, np.array([[0, 1, 1, 0]]), np.array([1]))
    difference = raised(features, current, structure(problem)) - plain(
        features, current, structure(problem)
    )
    torch.testing.assert_close(difference, torch.tensor([[0.0, 2.5]]))
