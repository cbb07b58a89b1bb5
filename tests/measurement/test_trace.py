import numpy as np
import pytest

from placeto import PlacetoError
from placeto.measurement.calibration.profile import Profile, gap_seconds, op_seconds, typical
from placeto.measurement.trace import OpRun, Received, read_trace
from tests.measurement.traces import GPU, W0, W1, op, received, run_metadata


def test_instants_by_hand():
    data = run_metadata(
        w1=[op("b", 40, (2, 9), 12, "Relu")],
        w0=[op("a", 10, (1, 6), 7)],
        w0_again=[received("a", 512, 20, 15, W0, W1)],
    )
    trace = read_trace(data, [W0, W1])
    assert [run.op for run in trace.ops] == ["a", "b"]
    for run, wanted in zip(
        trace.ops,
        [OpRun("a", "Op", 0, 0.0, 7e-6, 5e-6), OpRun("b", "Relu", 1, 30e-6, 42e-6, 7e-6)],
        strict=True,
    ):
        assert (run.op, run.type, run.device) == (wanted.op, wanted.type, wanted.device)
        instants = (run.begin, run.end, run.seconds)
        assert instants == pytest.approx((wanted.begin, wanted.end, wanted.seconds), abs=1e-12)
    (came,) = trace.received
    wanted = Received("a", 0, 1, 512, 10e-6, 25e-6)
    assert (came.producer, came.source, came.destination, came.num_bytes) == ("a", 0, 1, 512)
    assert (came.begin, came.end) == pytest.approx((wanted.begin, wanted.end))


def test_a_large_tensor_has_its_bytes_beside_the_label():
    data = run_metadata(
        w0=[op("a", 0, (0, 1), 1)], w1=[received("a", 16 * 2**20 + 4, 1, 9000, W0, W1)]
    )
    (came,) = read_trace(data, [W0, W1]).received
    assert came.num_bytes == 16 * 2**20 + 4


def test_nanoseconds_and_where_there_are_none():
    fine = op("a", 0, (1, 6), 7)
    fine.op_end_rel_nanos = 6_789
    coarse = op("b", 50, (1, 6), 7, nanoseconds=False)
    trace = read_trace(run_metadata(w0=[fine, coarse]), [W0])
    assert [run.seconds for run in trace.ops] == pytest.approx([5.789e-6, 5e-6])
    assert trace.ops[1].begin == pytest.approx(50e-6)


def test_what_carries_tensors_is_no_op():
    data = run_metadata(
        w0=[
            op("_SOURCE", 0, (0, 1), 1, "NoOp"),
            op("a", 1, (0, 5), 5),
            op("a/_3", 7, (0, 90), 90, "_Send"),
            op("x/_4", 7, (0, 90), 90, "_Recv"),
            op("y/_5", 7, (0, 90), 90, "_HostRecv"),
            # An op that is named like one.
            op("my_Recv", 9, (0, 2), 2, "Identity"),
        ],
        w1=[op("elsewhere", 3, (0, 1), 1)],
    )
    assert [run.op for run in read_trace(data, [W0]).ops] == ["a", "my_Recv"]


def test_a_gpu_has_the_time_of_its_kernels_not_of_their_launch():
    data = run_metadata(
        gpu=[op("a", 0, (0, 3), 4)],
        stream=[op("a:MatMul", 2, (0, 500), 500, nanoseconds=False)],
    )
    other = GPU.replace("GPU:0", "GPU:10")
    for devices in ([GPU], [other, GPU]):
        (run,) = read_trace(data, devices).ops
        assert (run.op, devices[run.device]) == ("a", GPU)
        assert run.seconds == pytest.approx(500e-6)
    # Of two processes' first GPUs it is not known whose kernels they are.
    (run,) = read_trace(data, [GPU, GPU.replace("localhost", "worker")]).ops
    assert run.seconds == pytest.approx(3e-6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xff", "trace: not a RunMetadata"),
        (b"", "trace: no op ran on .*task:0/device:CPU:0; devices in it: none"),
    ],
)
def test_what_is_no_trace(data, message):
    with pytest.raises(PlacetoError, match=message):
        read_trace(data, [W0])


def test_no_op_on_the_device():
    data = run_metadata(w1=[op("a", 0, (0, 1), 1)])
    with pytest.raises(PlacetoError, match=r"no op ran on .*task:0.*devices in it: .*task:1"):
        read_trace(data, [W0])


def test_op_times_by_hand():
    data = run_metadata(
        w0=[
            op("b", 0, (1, 4), 5),
            op("loop", 10, (0, 2), 3),
            op("loop", 20, (0, 5), 6),
            op("placeto_input/x/variable", 30, (0, 99), 99),
        ]
    )
    seconds = op_seconds(read_trace(data, [W0]), {"a": 0, "b": 1, "loop": 2})
    assert seconds == pytest.approx([0.0, 3e-6, 7e-6])


def test_gaps_by_hand():
    # Kernels begin 10, 20 and 50 us after each other and take 4, 5 and 9 us: gaps of 6, 15, 41 us.
    runs = [op("a", 0, (1, 5), 6), op("b", 10, (1, 6), 7), op("c", 30, (1, 10), 11)]
    trace = read_trace(run_metadata(w0=[*runs, op("d", 80, (1, 2), 3)]), [W0])
    assert gap_seconds(trace) == pytest.approx(15e-6)
    alone = read_trace(run_metadata(w0=runs[:1]), [W0])
    assert gap_seconds(alone) == 0.0


def test_one_slow_step_does_not_count():
    first = Profile(1.0, 1.0, np.array([[1.0, 5.0], [2.0, 0.0]]), 0.0)
    second = Profile(1.0, 1.0, np.array([[900.0, 0.0]]), 0.0)
    assert typical([first, second]).tolist() == [2.0, 0.0]


def test_a_profile_at_another_speed():
    slower = Profile(2.0, 2.2, np.array([[1.0, 0.5]]), 0.1).at(3.0)
    assert (slower.alone_seconds, slower.op_seconds.tolist()) == (3.0, [[1.5, 0.75]])
    assert slower.step_seconds == pytest.approx(3.3)
    assert slower.gap_seconds == pytest.approx(0.15)
