import pytest
import torch

from placeto.models.placeto_2019.messages import Pools

WIDTH = 6


@pytest.fixture
def x():
    return torch.randn(5, 2, WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def members():
    """(2, 2, 5): two sets of each of two states; the second set of the first state is empty."""
    return torch.tensor(
        [[[1, 0, 1, 0, 1], [0, 1, 0, 0, 0]], [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0]]],
        dtype=torch.bool,
    )


def test_pools_by_hand(x, members):
    layer = Pools(2, WIDTH)
    sets = {(0, 0): [0, 2, 4], (0, 1): [1], (1, 0): [], (1, 1): [0, 2, 3]}
    output = layer(x, members)
    assert output.shape == (2, 2 * WIDTH)
    for (pool, state), nodes in sets.items():
        mean = sum((layer.f[pool](x[v, state]) for v in nodes), torch.zeros(WIDTH))
        mean = mean / max(len(nodes), 1)
        first, _, second, _ = layer.g
        hidden = (mean @ first.weight[pool].T + first.bias[pool, 0]).relu()
        expected = (hidden @ second.weight[pool].T + second.bias[pool, 0]).relu()
        torch.testing.assert_close(output[state, pool * WIDTH : (pool + 1) * WIDTH], expected)


def test_pools_do_not_care_for_order(x, members):
    layer = Pools(2, WIDTH)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(layer(x[order], members[:, :, order]), layer(x, members))


def test_who_is_in_no_set_is_not_heard(x, members):
    layer = Pools(2, WIDTH)
    before = layer(x, members)
    x[3, 0] = 100.0
    x[4, 1] = -100.0
    assert torch.equal(layer(x, members), before)
