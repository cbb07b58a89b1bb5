import pytest
import torch
from torch import nn

from placeto.models.network import function, mlp, side_by_side


def test_networks_side_by_side_are_the_networks():
    networks = [function(4) for _ in range(3)]
    for network in networks:
        nn.init.normal_(network[2].bias)
    x = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))
    expected = torch.stack([network(each) for network, each in zip(networks, x, strict=True)])
    torch.testing.assert_close(side_by_side(networks)(x), expected)


@pytest.mark.parametrize(
    "network", [mlp([50, 60, 70]), function(50), side_by_side([function(50), function(50)])]
)
def test_weights_keep_the_scale_of_what_passes_through(network):
    # He et al.: uniform to sqrt(6 / inputs), so that relu halves what the weights double.
    for name, parameter in network.named_parameters():
        if name.endswith("weight"):
            bound = (6 / parameter.shape[-1]) ** 0.5
            assert 0.95 * bound < parameter.abs().max() <= bound
        else:
            assert not parameter.any()
