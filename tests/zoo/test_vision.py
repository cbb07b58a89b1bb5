"""The bundled convolutional networks against their papers' figures."""

import pytest

from placeto.graph import load_graph
from tests.extraction.macs import forward_macs

BATCH = 32


# Multiply-adds an image: He et al. 2015, arXiv:1512.03385, 3.8 billion (3.86 with Keras' biases
# and head); Zoph et al. 2017, arXiv:1707.07012, 564 million. Parameters: Keras' own counts, with
# and without the moving statistics.
@pytest.mark.parametrize(
    ("name", "macs", "parameters", "trained"),
    [
        ("resnet50", 3.86e9, 25_636_712, 25_583_592),
        ("nasnet", 564e6, 5_326_716, 5_289_978),
    ],
)
def test_work_and_parameters_are_the_published_ones(
    name: str, macs: float, parameters: int, trained: int
) -> None:
    graph = load_graph(name)
    assert forward_macs(graph) / BATCH == pytest.approx(macs, rel=0.002)
    # A momentum for each trained one, and the optimizer's iteration counter and learning rate.
    assert graph.param_bytes.sum() == 4 * (parameters + trained) + 12
    assert graph.meta["kind"] == "vision"
