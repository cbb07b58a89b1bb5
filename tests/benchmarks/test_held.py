import numpy as np
import pytest

from benchmarks.held import Cost, cost_of, fit_cost, held_step_time
from placeto.files import write_json
from tests.builders import make_cluster, make_graph, make_problem

# One tensor of 100 bytes for two consumers on the other device, and one that stays.
GRAPH = make_graph(
    {"a": 1.0, "b": 2.0, "c": 3.0, "d": 1.0, "e": 4.0},
    [("a", 100, ["b", "c", "d"]), ("d", 10, ["e"])],
)
PROBLEM = make_problem(GRAPH, make_cluster(2))
DEVICES = np.array([0, 1, 1, 0, 0])


def test_by_hand():
    cost = Cost(source=(0.25, 0.01), wire=(0.0, 0.02), destination=(0.5, 0.03))
    # Device 0: a until 1; then d is first, as it was there first in op order, until 2; then the
    # send (1.25 s) or e (4 s): d's output and the send were ready at 2 and at 1. So the send runs
    # from 2 until 3.25, the wire until 5.25; the receipt takes 3.5 s, until 8.75; b and c until
    # 13.75, and e on device 0 from 3.25 until 7.25.
    assert held_step_time(PROBLEM, DEVICES, cost) == pytest.approx(13.75)


def test_without_transfers_nothing_is_added():
    dear = Cost((9.0, 9.0), (9.0, 9.0), (9.0, 9.0))
    assert held_step_time(PROBLEM, np.zeros(5, dtype=np.int64), dear) == 11.0


def test_the_cost_is_found_again(tmp_path):
    cost = Cost((2e-5, 4e-10), (1e-5, 1e-10), (3e-5, 5e-10))

    def row(count: int, size: int) -> dict[str, float]:
        each = {key: count * (tensor + byte * size) for key, (tensor, byte) in vars(cost).items()}
        clock = sum(each.values())
        return {"tensors": count, "bytes": size, "clock": clock} | each

    rows = [row(count, size) for count in (1, 16) for size in (4, 2**16, 2**26)]
    kept = tmp_path / "transfers.json"
    write_json(kept, {"rows": rows})
    for found in (fit_cost(rows), cost_of(kept)):
        for key, wanted in vars(cost).items():
            assert getattr(found, key) == pytest.approx(wanted, rel=1e-6)
