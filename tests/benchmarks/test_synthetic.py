import numpy as np
import pytest

from benchmarks.synthetic import synthetic_graph
from placeto import load_graph
from placeto.grouping import colocation_groups


@pytest.mark.parametrize("num_ops", [100, 101, 9_999, 80_000])
def test_numbers_of_ops_in_topological_order(num_ops: int) -> None:
    graph = synthetic_graph(num_ops)
    assert graph.num_ops == num_ops
    producers, consumers = graph.op_edges
    assert (producers < consumers).all()


def test_like_a_bundled_step() -> None:
    shares = []
    for graph in (synthetic_graph(20_000), load_graph("inception_v3")):
        producers, consumers = graph.op_edges
        inputs = np.bincount(consumers, minlength=graph.num_ops)
        shares.append([
            (inputs == 0).mean(),
            (graph.op_seconds["k80"] == 0).mean(),
            graph.num_edges / graph.num_ops,
            np.mean(["gradient" in name for name in graph.op_names]),
            graph.op_seconds["cpu"].sum() / graph.op_seconds["k80"].sum(),
        ])  # fmt: skip
        # Half of the edges are short, some span most of the step.
        spans = (consumers - producers) / graph.num_ops
        assert np.median(spans) < 0.01
        assert np.quantile(spans, 0.99) > 0.5
    assert shares[0] == pytest.approx(shares[1], rel=0.2)


def test_gradients_share_the_group_of_their_op() -> None:
    graph = synthetic_graph(1_000)
    groups = dict(zip(graph.op_names, colocation_groups(graph).tolist(), strict=True))
    forward = [name for name in groups if name.count("/") == 1]
    assert len(forward) == 320
    assert all(groups[name] == groups[f"gradient_tape/{name}/grad"] for name in forward)


def test_the_seed_decides() -> None:
    assert synthetic_graph(500, seed=3) == synthetic_graph(500, seed=3)
    assert synthetic_graph(500, seed=3) != synthetic_graph(500, seed=4)
