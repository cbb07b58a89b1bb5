import numpy as np

from placeto import PlacementProblem
from placeto.graph import ComputationGraph
from placeto.models.one_shot import attributes
from tests.builders import make_cluster


def problem_of_three_groups():
    """Groups 2 -> 0 -> 1, so the order is 2, 0, 1; ops a, b are group 2, c is 0, d and e are 1."""
    graph = ComputationGraph(
        name="by hand",
        op_names=list("abcde"),
        op_types=["Mul", "Conv", "Conv", "Add", "Mul"],
        op_seconds={"k": np.ones(5)},
        tensor_producer=np.array([0, 0, 1, 2, 3]),
        tensor_bytes=np.array([99, 9, 999, 0, 50]),
        edge_tensor=np.array([0, 1, 2, 3, 3, 4]),
        edge_consumer=np.array([1, 2, 2, 3, 4, 4]),
    )
    return PlacementProblem(graph, make_cluster(2), np.array([2, 2, 0, 1, 1]))


def test_attributes_by_hand():
    found = attributes(problem_of_three_groups())
    # Add, Conv, Mul; groups 2, 0, 1.
    assert found.types.tolist() == [[0, 1, 1], [0, 1, 0], [1, 0, 1]]
    # a's 99 bytes and d's 50 stay at home; log 1000 : log 10 = 3 : 1
    expected = [[1, 1 / 3, 0, 0, 0], [0] * 5, [0] * 5]
    np.testing.assert_allclose(found.outputs, expected, atol=1e-15)
    assert found.parents.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    nobody = [-1.0] * 5
    assert found.places.tolist() == [
        [0.0, -1.0, *nobody, 0.5, *nobody],
        [0.5, 0.0, *nobody, 1.0, *nobody],
        [1.0, 0.5, *nobody, -1.0, *nobody],
    ]


def test_of_many_neighbours_and_outputs_there_are_the_nearest_and_the_largest():
    # A hub between eight groups before it and eight after it.
    graph = ComputationGraph(
        name="hub",
        op_names=[f"op{op}" for op in range(17)],
        op_types=["Op"] * 17,
        op_seconds={"k": np.ones(17)},
        tensor_producer=np.array([*range(8), *[8] * 8]),
        tensor_bytes=np.array([1] * 8 + [2**power - 1 for power in range(1, 9)]),
        edge_tensor=np.arange(16),
        edge_consumer=np.array([*[8] * 8, *range(9, 17)]),
    )
    found = attributes(PlacementProblem(graph, make_cluster(2), "none"))
    hub = found.places[8]
    np.testing.assert_allclose(hub[0], 8 / 16)
    np.testing.assert_allclose(hub[1:7] * 16, [7, 6, 5, 4, 3, 2])
    np.testing.assert_allclose(hub[7:] * 16, [9, 10, 11, 12, 13, 14])
    np.testing.assert_allclose(found.outputs[8], np.array([8, 7, 6, 5, 4]) / 8)
