"""What a traced step says of its order and of tensors that wait, by hand."""

import numpy as np
import pytest

from placeto import PlacementProblem, simulate
from placeto.measurement import Measurement
from placeto.measurement.fidelity import conduct
from tests.builders import make_graph
from tests.measurement.traces import W0, W1, WORKERS, op, received, run_metadata

# Simulated on d0: a, b, c, e in this order; f on d1 waits for a.
GRAPH = make_graph(dict.fromkeys("abcef", 1.0), [("a", 100, ["f"])])
PROBLEM = PlacementProblem(GRAPH, WORKERS, "none")
DEVICES = np.array([0, 0, 0, 0, 1])


def seen(*names, sent=30):
    """The conduct of a step whose ops on d0 begin in an order, 10 us apart, each of 8 us."""
    ops = [op(name, 10 * place, (1, 7), 8) for place, name in enumerate(names)]
    data = run_metadata(w0=ops, w1=[op("f", 900, (1, 7), 8), received("a", 100, sent, 5, W0, W1)])
    return conduct(PROBLEM, simulate(PROBLEM, DEVICES), Measurement((1.0,), traces=(data,)))


def test_pairs_in_order():
    assert seen("a", "b", "c", "e").in_order == 1.0
    # Of six pairs one is the other way round, then all.
    assert seen("a", "c", "b", "e").in_order == pytest.approx(5 / 6)
    assert seen("e", "c", "b", "a").in_order == 0.0
    # What the trace lacks is in no pair, and a single op is in order.
    assert seen("a", "e", "c").in_order == pytest.approx(2 / 3)
    assert seen("a").in_order == 1.0


def test_how_long_a_tensor_waits():
    # a ends at 8 us and is sent at 30 us; the step ends with f at 908 us.
    found = seen("a", "b", "c", "e")
    assert found.send_waits == pytest.approx([22e-6], abs=1e-9)
    assert found.send_wait == pytest.approx(22e-6, abs=1e-9)
    assert found.step_seconds == pytest.approx(908e-6, abs=1e-9)
    # A clock that reads earlier than the op's end is no wait.
    assert seen("a", sent=2).send_wait == 0.0
