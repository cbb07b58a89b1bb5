"""The policy: torch, NumPy and compiled code say the same, of any devices."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.envs import generator
from placeto.envs.features.groups import GROUP_ATTRIBUTES, group_graph
from placeto.envs.features.pairs import GROUP_FEATURES
from placeto.models.placeto import scoring
from placeto.models.placeto.network import PlacetoPolicy
from placeto.models.placeto.scoring import embedding_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from tests.builders import make_cluster, make_graph, make_problem
from tests.compiled import from_python
from tests.strategies import problems

score = from_python(scoring.score)

POOLINGS = ["devices", "none"]
SMALL = PlacetoNetworkConfig(hidden=7, embedding=3, width=5, rounds=2, heads=2, rank=3)


def drawn(shape=SMALL, seed=0):
    """A policy whose weights are all drawn, those included that begin at 0."""
    torch.manual_seed(seed)
    policy = PlacetoPolicy(shape)
    torch.nn.init.normal_(policy.last.weight)
    return policy


def seen(rng, batch, num_devices):
    """Random features, and devices that are allowed: at least one each."""
    shapes = (num_devices, SMALL.pair_columns), (GROUP_FEATURES,), (SMALL.embedding,)
    x, y, z = (rng.normal(size=(batch, *shape)).astype(np.float32) for shape in shapes)
    allowed = rng.random((batch, num_devices)) < 0.7
    allowed[np.arange(batch), rng.integers(num_devices, size=batch)] = True
    return x, y, z, allowed


def logits_of(policy, x, y, z, allowed):
    with torch.inference_mode():
        return policy(*map(torch.from_numpy, (x, y, z, allowed))).numpy()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_compiled_scores_are_torch_s(seed, num_devices):
    policy = drawn()
    weights = policy.weights()
    x, y, z, allowed = seen(np.random.default_rng(seed), 4, num_devices)
    expected = logits_of(policy, x, y, z, allowed)
    for row in range(4):
        logits = np.full(num_devices, np.nan)
        score(weights, x[row], y[row], z[row], allowed[row], logits)
        np.testing.assert_allclose(logits, expected[row], rtol=1e-4, atol=1e-4)
        assert np.isneginf(logits).tolist() == (~allowed[row]).tolist()


@given(problems(max_ops=30), st.sampled_from(["rounds", "none"]), st.sampled_from(POOLINGS))
def test_embedding_without_torch_is_torch_s(problem, passing, pooling):
    shape = replace(SMALL, passing=passing, pooling=pooling)
    policy, graph = drawn(shape), group_graph(problem)
    with torch.inference_mode():
        expected = policy.embed(graph)
    table, affinity = embedding_of(policy.arrays(), graph, shape)
    assert table.shape == (problem.num_groups, shape.embedding)
    assert table.dtype == np.float32
    np.testing.assert_allclose(table, expected.table, rtol=1e-4, atol=1e-5)
    if shape.num_heads:
        np.testing.assert_allclose(affinity.queries, expected.queries, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(affinity.keys, expected.keys, rtol=1e-4, atol=1e-5)
    else:
        assert expected.queries is expected.keys is None
        assert affinity.queries.shape == affinity.keys.shape == (problem.num_groups, 0, 0)


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 40)


def test_numbering_groups_otherwise_numbers_the_embedding_likewise(nmt):
    order = np.random.default_rng(0).permutation(nmt.num_groups)  # group -> its other number
    other = PlacementProblem(nmt.graph, nmt.cluster, order[nmt.op_group])
    policy = drawn()
    with torch.inference_mode():
        table, *others = policy.embed(group_graph(nmt))
        renumbered, *rest = policy.embed(group_graph(other))
    assert len(torch.unique(table, dim=0)) > nmt.num_groups // 2
    torch.testing.assert_close(renumbered[order], table)
    for of_heads, again in zip(others, rest, strict=True):
        torch.testing.assert_close(again[order], of_heads)


def test_permuting_devices_permutes_the_logits():
    rng = np.random.default_rng(0)
    x, y, z, allowed = seen(rng, 6, 5)
    order, policy = rng.permutation(5), drawn()
    logits = logits_of(policy, x, y, z, allowed)
    assert len(np.unique(logits[allowed])) == allowed.sum()
    permuted = logits_of(policy, x[:, order], y, z, allowed[:, order])
    np.testing.assert_allclose(permuted, logits[:, order], rtol=1e-5, atol=1e-5)


def test_what_is_seen_of_forbidden_devices_does_not_matter():
    x, y, z, allowed = seen(np.random.default_rng(0), 6, 5)
    policy = drawn()
    logits = logits_of(policy, x, y, z, allowed)
    x[~allowed] = 100
    np.testing.assert_allclose(logits_of(policy, x, y, z, allowed), logits, rtol=1e-5, atol=1e-5)
    chances = torch.softmax(torch.from_numpy(logits), dim=1).numpy()
    assert (chances[~allowed] == 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)


def test_before_training_all_allowed_devices_are_equally_likely():
    x, y, z, allowed = seen(np.random.default_rng(0), 6, 5)
    logits = logits_of(PlacetoPolicy(SMALL), x, y, z, allowed)
    assert (logits[allowed] == 0).all()
    assert np.isneginf(logits[~allowed]).all()


def test_messages_go_both_ways_and_no_further_than_their_rounds():
    names = [f"op{number}" for number in range(7)]
    chain = [(a, 10, [b]) for a, b in pairwise(names)]
    problem = make_problem(make_graph(dict.fromkeys(names, 1.0), chain), make_cluster(2))
    graph, policy = group_graph(problem), drawn(replace(SMALL, width=16))

    def heard(group):
        attributes = graph.attributes.copy()
        attributes[group] += 1
        return policy.embed(replace(graph, attributes=attributes)).table[3]

    present = policy.embed(graph).table[3]
    changes = [not torch.equal(heard(group), present) for group in range(7)]
    assert changes == [False, True, True, True, True, True, False]


def test_attributes_of_the_diamond_by_hand():
    # Six ops of 10 ms, in levels 0, 1, 1, 2, 2, 3; all tensors take 1 ms on any channel.
    graph = group_graph(generator.diamond())
    assert graph.attributes.shape == (6, GROUP_ATTRIBUTES)
    work, to, behind, comes, goes, reads, read, memory = graph.attributes.T

    def shares(*values):
        return pytest.approx(np.log1p(1000 * np.array(values)) / np.log1p(1000), rel=1e-5)

    assert work == shares(*[10 / 60] * 6)
    assert to == pytest.approx([0, 1 / 4, 2 / 4, 1 / 4, 2 / 4, 3 / 4])
    assert behind == pytest.approx([1, 3 / 4, 2 / 4, 3 / 4, 2 / 4, 1 / 4])
    # The source's one tensor goes to two groups: two edges of the group graph.
    assert comes == shares(*np.array([0, 1, 1, 1, 1, 2]) / 60)
    assert goes == shares(*np.array([2, 1, 1, 1, 1, 0]) / 60)
    assert reads == pytest.approx(np.log1p([0, 1, 1, 1, 1, 2]) / 4)
    assert read == pytest.approx(np.log1p([2, 1, 1, 1, 1, 0]) / 4)
    assert memory == shares(*np.array([1, 1, 1, 1, 1, 0]) * 10**6 / 2**30)
    assert graph.edges[:, 0] == shares(*[1 / 60] * 6)
    edges = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    assert set(edges) == {(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)}
