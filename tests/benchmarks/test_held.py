import numpy as np
import pytest

from benchmarks.transfers import Cost, cost_of, fit_cost, held_step_time
from placeto.support.files import write_json
from tests.builders import make_cluster, make_graph, make_problem

# One tensor of 100 bytes for two consumers on the other device, and one that stays.
GRAPH = make_graph(
    {"a": 1.0, "b": 2.0, "c": 3.0, "d": 1.0, "e": 4.0},
    [("a", 100, ["b", "c", "d"]), ("d", 10, ["e"])],
)
PROBLEM = make_problem(GRAPH, make_cluster(2))
DEVICES = np.array([0, 1, 1, 0, 0])


def test_by_hand():
    cost = Cost(source=(0.25, 0.01), destination=(0.5, 0.03))
    # Device 0: a until 1; d and the send are ready, d is first in op order, until 2; then the send
    # (1.25 s), as e was ready later; e from 3.25 until 7.25. Device 1: the receive (3.5 s) from 1
    # until 4.5, when the send is long done; b and c until 9.5.
    assert held_step_time(PROBLEM, DEVICES, cost) == pytest.approx(9.5)


def test_consumers_wait_for_the_slower_end():
    cost = Cost(source=(5.0, 0.0), destination=(0.5, 0.0))
    # As above, but the send takes from 2 until 7: b and c from then, e until 11.
    assert held_step_time(PROBLEM, DEVICES, cost) == pytest.approx(12.0)


def test_a_tensor_is_not_there_before_it_is_received():
    chain = make_graph({"a": 1.0, "b": 2.0, "c": 4.0}, [("a", 4, ["b"]), ("b", 4, ["c"])])
    problem = make_problem(chain, make_cluster(2))
    cost = Cost(source=(0.0, 0.0), destination=(0.5, 0.0))
    # Gone at once, but b begins at 1.5 and c at 4.
    assert held_step_time(problem, np.array([0, 1, 0]), cost) == pytest.approx(8.0)


def test_without_transfers_nothing_is_added():
    dear = Cost((9.0, 9.0), (9.0, 9.0))
    assert held_step_time(PROBLEM, np.zeros(5, dtype=np.int64), dear) == 11.0


def test_the_cost_is_found_again(tmp_path):
    cost = Cost((2e-5, 4e-10), (3e-5, 5e-10))

    def row(count: int, size: int) -> dict[str, float]:
        each = {key: count * (tensor + byte * size) for key, (tensor, byte) in vars(cost).items()}
        return {"tensors": count, "bytes": size} | each

    rows = [row(count, size) for count in (1, 16) for size in (4, 2**16, 2**26)]
    kept = tmp_path / "transfers.json"
    write_json(kept, {"rows": rows})
    for found in (fit_cost(rows), cost_of(kept)):
        for key, wanted in vars(cost).items():
            assert getattr(found, key) == pytest.approx(wanted, rel=1e-6)
