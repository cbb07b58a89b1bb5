"""Graphs that are made up, of three shapes."""

from collections import Counter

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, place, simulate
from placeto.extraction.bundled import KINDS
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import random_placement
from placeto.support import bundle
from placeto.zoo.folders import family_graphs
from placeto.zoo.synthetic import LARGEST, SLOWDOWN, SMALLEST, STYLES, synthetic_graph


@pytest.fixture(scope="module", params=STYLES)
def family(request: pytest.FixtureRequest) -> list[ComputationGraph]:
    return family_graphs(f"family:{request.param}")


def test_graphs_are_of_one_piece_and_of_many_sizes(family: list[ComputationGraph]) -> None:
    assert len({graph.num_ops for graph in family}) > 20
    for graph in family:
        assert SMALLEST <= graph.num_ops <= LARGEST
        sources, consumers = graph.op_edges
        first, last = set(range(graph.num_ops)), set(range(graph.num_ops))
        first -= set(consumers.tolist())
        last -= set(sources.tolist())
        assert first == {0}  # everything follows from the first op
        assert 0 not in last
        assert graph.meta["source"] == f"family:{graph.meta['family']['name']}?number=" + str(
            graph.meta["family"]["number"]
        )


def test_they_can_be_placed_and_simulated(family: list[ComputationGraph]) -> None:
    for graph in family[:4]:
        for preset in ("k80x2", "k80x4-cpu", "a100x2-v100x2-cpu"):
            problem = PlacementProblem(graph, load_cluster(preset))
            devices = random_placement(problem, np.random.default_rng(0))
            assert simulate(problem, devices).feasible
            alone = place(problem, method="single").step_time
            assert place(problem, method="etf").step_time < 0.9 * alone


def test_every_kind_of_the_presets_has_op_times() -> None:
    kinds = {
        kind for name in bundle.names("clusters", (".yaml",)) for kind in load_cluster(name).kinds
    }
    assert kinds | {"p100"} == set(SLOWDOWN) == set(KINDS)
    peak = {kind.name: kind.flops_per_second for kind in DEVICE_KINDS}
    for kind, slowdown in SLOWDOWN.items():
        assert slowdown == pytest.approx(peak["k80"] / peak[kind], rel=0.05)
    graph = synthetic_graph("layered", 1, "x")
    for kind, slowdown in SLOWDOWN.items():
        ratio = graph.op_seconds[kind].sum() / graph.op_seconds["k80"].sum()
        assert ratio == pytest.approx(slowdown, rel=0.1)
        assert ((graph.op_seconds[kind] == 0) == (graph.op_seconds["k80"] == 0)).all()


def test_series_and_parallel_reductions_leave_one_edge() -> None:
    graphs = family_graphs("family:series_parallel")
    # A split in series adds one edge, one in parallel two.
    added = [(graph.num_edges - 1) / (graph.num_ops - 2) for graph in graphs]
    assert np.mean(added) == pytest.approx(1.5, rel=0.05)
    for graph in graphs:
        left = Counter(zip(*(each.tolist() for each in graph.op_edges), strict=True))
        for op in range(graph.num_ops - 1, 1, -1):
            # The op that was put in last has one input and one output, an edge that it was put
            # into or beside.
            into = [edge for edge in left if edge[1] == op]
            out = [edge for edge in left if edge[0] == op]
            assert len(into) == len(out) == 1
            del left[into[0]], left[out[0]]
            left[into[0][0], out[0][1]] += 1
        assert set(left) == {(0, 1)}
