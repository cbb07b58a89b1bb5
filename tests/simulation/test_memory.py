import numpy as np
from hypothesis import given

import placeto
from placeto import PlacementProblem, simulate
from placeto.simulation import memory_over_time
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import clusters_of_links, placed


@given(placed(max_ops=30) | placed(max_ops=30, made=clusters_of_links, ranked=True))
def test_maximum_is_the_kernels_peak(example: tuple[PlacementProblem, list[int]]) -> None:
    problem, devices = example
    schedule = simulate(problem, devices)
    instants, memory = memory_over_time(problem, schedule)
    assert instants[0] == 0
    assert (np.diff(instants) > 0).all()
    assert memory.shape == (len(instants), problem.num_devices)
    assert memory.max(axis=0).tolist() == schedule.peak_memory.tolist()
    parameters = np.zeros(problem.num_devices, dtype=int)
    np.add.at(parameters, np.asarray(devices)[problem.op_group], problem.graph.param_bytes)
    assert (memory >= parameters).all()
    if np.isfinite(schedule.step_time):
        assert memory[-1].tolist() == parameters.tolist()


def test_inception_v3_peak() -> None:
    graph, cluster = placeto.load_graph("inception_v3"), placeto.load_cluster("k80x4")
    problem = PlacementProblem(graph, cluster, "auto")
    schedule = simulate(problem, np.arange(problem.num_groups) % 4)
    _, memory = memory_over_time(problem, schedule)
    assert memory.max(axis=0).tolist() == schedule.peak_memory.tolist()


def test_over_time_by_hand() -> None:
    # a [0, 2) on d0 puts out 10 bytes; b [12, 13) on d1 reads them. The transfer takes [2, 12).
    # d0: 10 from 0 until the arrival at 12. d1: 7 of b's parameters throughout; the copy's 10
    # from 2 until b has finished at 13; b's 3 temporary bytes in [12, 13).
    graph = make_graph(
        {"a": 2, "b": 1}, [("a", 10, ["b"])], param_bytes={"b": 7}, temp_bytes={"b": 3}
    )
    problem = make_problem(graph, make_cluster(2))
    instants, memory = memory_over_time(problem, simulate(problem, [0, 1]))
    assert instants.tolist() == [0, 2, 12, 13]
    assert memory.tolist() == [[10, 7], [10, 17], [0, 20], [0, 7]]
