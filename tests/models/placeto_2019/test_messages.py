import numpy as np
import pytest
import torch

from placeto.models.placeto_2019.messages import Rounds, Sweep
from placeto.models.placeto_2019.structure import structure
from tests.builders import make_cluster, make_graph, make_problem

WIDTH = 6
EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (1, 4)]  # a diamond with a tail


def problem_of(order):
    """The diamond with a tail, node v under the number order[v]."""
    names = sorted(range(5), key=lambda node: order[node])
    graph = make_graph(
        {f"op{node}": 1.0 for node in names}, [(f"op{a}", 8, [f"op{b}"]) for a, b in EDGES]
    )
    return make_problem(graph, make_cluster(2))


@pytest.fixture(params=[lambda: Rounds(WIDTH, 2), lambda: Sweep(WIDTH)], ids=["rounds", "sweep"])
def layer(request):
    return request.param()


@pytest.fixture
def h():
    return torch.randn(5, 3, WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def graph():
    return structure(problem_of(range(5)))


def functions_of(layer, direction):
    """f and g of one direction, of one vector."""
    if isinstance(layer, Sweep):
        return layer.f[direction], layer.g[direction]

    def one(stacked):
        first, _, second, _ = stacked

        def function(x):
            hidden = (x @ first.weight[direction].T + first.bias[direction, 0]).relu()
            return (hidden @ second.weight[direction].T + second.bias[direction, 0]).relu()

        return function

    return one(layer.f), one(layer.g)


def hear(layer, direction, vectors):
    """relu(g(mean relu(f(x)))) of a list of vectors, one at a time; 0 of none."""
    f, g = functions_of(layer, direction)
    return g(sum(map(f, vectors)) / len(vectors)) if vectors else torch.zeros(WIDTH)


def heard_by(node, direction):
    return [edge[direction] for edge in EDGES if edge[1 - direction] == node]


def test_rounds_by_hand(h, graph):
    layer = Rounds(WIDTH, rounds=3)
    output = layer(h, graph)
    for direction in range(2):
        for state in range(3):
            now = list(h[:, state])
            for _ in range(3):
                now = [
                    h[v, state] + hear(layer, direction, [now[u] for u in heard_by(v, direction)])
                    for v in range(5)
                ]
            torch.testing.assert_close(output[direction, :, state], torch.stack(now))


def test_sweep_by_hand(h, graph):
    layer = Sweep(WIDTH)
    output = layer(h, graph)
    for direction, order in enumerate((range(5), reversed(range(5)))):
        for state, node in ((s, v) for v in order for s in range(3)):
            done = output[direction, :, state]
            heard = hear(layer, direction, [done[u] for u in heard_by(node, direction)])
            torch.testing.assert_close(done[node], h[node, state] + heard)


def test_as_many_rounds_as_levels_are_a_sweep(h, graph):
    rounds, sweep = Rounds(WIDTH, rounds=3), Sweep(WIDTH)
    with torch.no_grad():
        for stacked, single in ((rounds.f, sweep.f), (rounds.g, sweep.g)):
            for direction, layer in ((d, k) for d in range(2) for k in (0, 2)):
                single[direction][layer].weight.copy_(stacked[layer].weight[direction])
                single[direction][layer].bias.copy_(stacked[layer].bias[direction, 0])
    torch.testing.assert_close(rounds(h, graph), sweep(h, graph))


def test_renumbering_nodes_renumbers_the_output(layer, h, graph):
    order = np.array([2, 4, 1, 0, 3])  # node -> its new number
    old = torch.from_numpy(np.argsort(order))
    renumbered = layer(h[old], structure(problem_of(order)))
    torch.testing.assert_close(renumbered, layer(h, graph)[:, old])


def test_batch_is_its_members(layer, h, graph):
    one_by_one = torch.cat([layer(h[:, [state]], graph) for state in range(3)], dim=2)
    torch.testing.assert_close(layer(h, graph), one_by_one)


def test_a_group_that_no_edge_leads_to_hears_nothing(layer, h, graph):
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if "bias" in name:
                parameter.fill_(1.0)  # so that even a message of nothing is something
    down, up = layer(h, graph)
    torch.testing.assert_close(down[0], h[0])
    torch.testing.assert_close(up[4], h[4])
    assert (down[1:] != h[1:]).any(dim=-1).all()
    assert (up[:4] != h[:4]).any(dim=-1).all()
