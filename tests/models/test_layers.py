import numpy as np
import pytest
import torch

from placeto.models.layers import Aggregate, Messages, Rounds, Sweep

EDGES = torch.tensor([[0, 0, 1, 2, 3, 1], [1, 2, 3, 3, 4, 4]])  # a diamond with a tail
LEVELS = [torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([4, 5])]
WIDTH = 6


@pytest.fixture
def x():
    return torch.randn(3, 5, WIDTH, generator=torch.Generator().manual_seed(0))


def hear(messages, vectors):
    """relu(g(mean relu(f(x)))) of a list of vectors, one at a time; 0 of none."""
    if not vectors:
        return torch.zeros(WIDTH)
    terms = [messages.f(vector).relu() for vector in vectors]
    return messages.g(sum(terms) / len(terms)).relu()


def parents(node):
    return [int(a) for a, b in EDGES.T if b == node]


def test_rounds_by_hand(x):
    layer = Rounds(WIDTH, rounds=3)
    expected = []
    for graph in x:
        now = list(graph)
        for _ in range(3):
            now = [graph[v] + hear(layer.messages, [now[u] for u in parents(v)]) for v in range(5)]
        expected.append(torch.stack(now))
    torch.testing.assert_close(layer(x, EDGES, ()), torch.stack(expected))


def test_sweep_by_hand(x):
    layer = Sweep(WIDTH)
    expected = []
    for graph in x:
        done = []
        for v in range(5):
            done.append(graph[v] + hear(layer.messages, [done[u] for u in parents(v)]))
        expected.append(torch.stack(done))
    torch.testing.assert_close(layer(x, EDGES, LEVELS), torch.stack(expected))


def test_as_many_rounds_as_levels_are_a_sweep(x):
    rounds, sweep = Rounds(WIDTH, rounds=3), Sweep(WIDTH)
    sweep.load_state_dict(rounds.state_dict())
    torch.testing.assert_close(rounds(x, EDGES, ()), sweep(x, EDGES, LEVELS))


@pytest.mark.parametrize("layer", [Rounds(WIDTH, 2), Sweep(WIDTH)])
def test_renumbering_nodes_renumbers_the_output(layer, x):
    order = torch.tensor([3, 0, 4, 1, 2])  # new number -> old
    inverse = torch.argsort(order)
    output = layer(x, EDGES, LEVELS)
    renumbered = layer(x[:, order], inverse[EDGES], LEVELS)
    torch.testing.assert_close(renumbered, output[:, order])


@pytest.mark.parametrize("layer", [Rounds(WIDTH, 2), Sweep(WIDTH)])
def test_batch_is_its_members(layer, x):
    one_by_one = torch.cat([layer(graph[None], EDGES, LEVELS) for graph in x])
    torch.testing.assert_close(layer(x, EDGES, LEVELS), one_by_one)


def test_a_node_without_parents_hears_nothing(x):
    layer = Messages(WIDTH)
    heard = torch.tensor([[0.0], [1], [1], [1], [1]])
    output = layer(x, EDGES, heard)
    assert not output[:, 0].any()
    torch.testing.assert_close(output[1, 4], hear(layer, [x[1, 3], x[1, 1]]))


def test_aggregate_by_hand(x):
    layer = Aggregate(WIDTH)
    members = torch.tensor([[1.0, 0, 1, 0, 1], [0, 0, 0, 0, 0]])
    output = layer(x, members.expand(3, 2, 5))
    torch.testing.assert_close(output[2, 0], hear(layer, [x[2, 0], x[2, 2], x[2, 4]]))
    torch.testing.assert_close(output[2, 1], layer.g(torch.zeros(WIDTH)).relu())


def test_aggregate_does_not_care_for_order(x):
    layer = Aggregate(WIDTH)
    members = torch.tensor([[[1.0, 1, 0, 1, 0]]]).expand(3, 1, 5)
    order = torch.from_numpy(np.random.default_rng(0).permutation(5))
    torch.testing.assert_close(layer(x[:, order], members[:, :, order]), layer(x, members))
