"""Fits on data whose answer is known."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import (
    Channel,
    Cluster,
    Device,
    PlacementProblem,
    PlacetoError,
    load_cluster,
    simulate,
)
from placeto.cluster import EndCost, Link, end_seconds
from placeto.measurement.calibration.busy import BusyExchange, Shape
from placeto.measurement.calibration.channels import EXCHANGES, fit_channel, fit_channels
from placeto.measurement.calibration.ends import Ends, measure_ends, pieces
from placeto.measurement.calibration.exchange import Exchange, Sample
from placeto.measurement.calibration.profile import KindRun, StepOverheads, fit_overheads
from placeto.simulation import step_times

BANDWIDTHS = st.floats(1e8, 1e11)
SHORT_TIMES = st.floats(1e-6, 1e-3)
ANY = Channel("any", ("x",), ("y",), 1.0)


def samples_of(bandwidth: float, latency: float, overhead: float) -> list[Sample]:
    return [
        Sample(count, size, latency + count * size / bandwidth + (count - 1) * overhead)
        for count, size in EXCHANGES
    ]


@given(BANDWIDTHS, SHORT_TIMES, SHORT_TIMES)
def test_exact_samples_give_the_figures_back(bandwidth, latency, overhead):
    fit, error = fit_channel(ANY, samples_of(bandwidth, latency, overhead))
    assert fit.bandwidth == pytest.approx(bandwidth, rel=1e-3)
    assert fit.latency_seconds == pytest.approx(latency, rel=1e-2, abs=2e-9)
    assert fit.overhead_seconds == pytest.approx(overhead, rel=1e-2, abs=2e-9)
    assert error < 1e-3


@given(
    st.floats(5e8, 5e9),
    st.floats(5e-5, 5e-4),
    st.floats(1e-5, 1e-4),
    st.integers(0, len(EXCHANGES) - 1),
    st.floats(3, 100),
)
def test_one_sample_that_is_far_off_does_not_pull_far(bandwidth, latency, overhead, which, factor):
    samples = samples_of(bandwidth, latency, overhead)
    bad = samples[which]
    samples[which] = Sample(bad.num_tensors, bad.num_bytes, bad.seconds * factor)
    fit, _ = fit_channel(ANY, samples)
    others = [each for number, each in enumerate(samples) if number != which]
    modelled = [
        fit.latency_seconds
        + each.num_tensors * each.num_bytes / fit.bandwidth
        + (each.num_tensors - 1) * fit.overhead_seconds
        for each in others
    ]
    off = np.abs(np.array(modelled) / [each.seconds for each in others] - 1)
    assert np.median(off) < 0.1


def test_samples_that_are_better_known_count_for_more():
    # Two groups that no channel fits: 1 ms and 2 ms for the same transfer.
    vague = [Sample(1, 1000, 2e-3, 1e-2)] * 3
    sure = [Sample(1, 1000, 1e-3, 1e-6)] * 3
    fit, _ = fit_channel(ANY, [*vague, *sure, Sample(4, 1000, 1e-3, 1e-6)])
    assert fit.latency_seconds + 1000 / fit.bandwidth == pytest.approx(1e-3, rel=0.05)


def test_no_figure_is_below_zero_or_infinite():
    fit, _ = fit_channel(ANY, [Sample(count, size, -1e-4) for count, size in EXCHANGES])
    assert (fit.latency_seconds, fit.overhead_seconds) == (0.0, 0.0)
    assert 0 < fit.bandwidth < np.inf


def three_devices(*, multicast: bool = False) -> Cluster:
    names = ("x", "y", "z")
    return Cluster(
        "three",
        tuple(Device(name, "k", 10**9) for name in names),
        (
            Channel("out-of-x", ("x",), ("y", "z"), 1e9, 1e-4, 2e-5, multicast),
            Channel("into-x", ("y", "z"), ("x",), 5e8, 2e-4, 3e-5),
            Channel("between", ("y", "z"), ("y", "z"), 2e9, 0.0, 1e-5),
        ),
    )


def test_a_simulated_cluster_is_found_again(tmp_path):
    """Exchanges on a simulated cluster, so that fit and simulation agree on what figures mean."""
    cluster = three_devices()
    exchanges = [Exchange(cluster, *shape, tmp_path) for shape in EXCHANGES]

    def sample(source: int, destination: int) -> list[Sample]:
        found = []
        for exchange, shape in zip(exchanges, EXCHANGES, strict=True):
            placements = [
                exchange.devices(source, consumer, destination)
                for consumer in (source, destination)
            ]
            here, there = step_times(exchange.problem, np.stack(placements))
            found.append(Sample(*shape, float(there - here)))
        return found

    channels, errors = fit_channels(cluster, sample)
    assert [channel.name for channel in channels] == ["out-of-x", "into-x", "between"]
    assert len(errors) == 3
    for channel, wanted in zip(channels, cluster.channels, strict=True):
        assert channel.bandwidth == pytest.approx(wanted.bandwidth, rel=1e-3)
        assert channel.latency_seconds == pytest.approx(wanted.latency_seconds, abs=1e-7)
        assert channel.overhead_seconds == pytest.approx(wanted.overhead_seconds, abs=1e-7)
        assert (channel.sources, channel.destinations) == (wanted.sources, wanted.destinations)


ENDS = Ends((EndCost(0, 1e-4, 1e-10), EndCost(2**22, 0.0, 2e-10)), (EndCost(0, 2e-4, 4e-10),))


def with_ends(channel: Channel) -> Channel:
    return Channel(
        channel.name, channel.sources, channel.destinations, channel.bandwidth,
        channel.latency_seconds, send=ENDS.send, receive=ENDS.receive,
    )  # fmt: skip


@pytest.mark.parametrize("bandwidth", [1e9, 1e11])
def test_a_simulated_cluster_whose_transfers_cost_their_ends_is_found_again(tmp_path, bandwidth):
    names = ("x", "y")
    devices = tuple(Device(name, "k", 10**9) for name in names)
    channels = (
        with_ends(Channel("there", ("x",), ("y",), bandwidth, 1e-4)),
        with_ends(Channel("back", ("y",), ("x",), bandwidth, 3e-4)),
    )
    cluster = Cluster("two", devices, channels)
    exchanges = [Exchange(cluster, *shape, tmp_path) for shape in EXCHANGES]

    def sample(source: int, destination: int) -> list[Sample]:
        found = []
        for exchange, shape in zip(exchanges, EXCHANGES, strict=True):
            many = [exchange.devices(source, end, destination) for end in (source, destination)]
            here, there = step_times(exchange.problem, np.stack(many))
            found.append(Sample(*shape, float(there - here)))
        return found

    found, errors = fit_channels(cluster, sample, lambda source, destination: ENDS)
    assert max(errors) < 1e-3
    for channel, wanted in zip(found, channels, strict=True):
        assert (channel.send, channel.receive) == (ENDS.send, ENDS.receive)
        assert channel.overhead_seconds == 0.0
        assert channel.latency_seconds == pytest.approx(wanted.latency_seconds, rel=1e-3)
        # Where the ends take longer than the wire, the wire can be any that is as fast.
        seconds = 2**26 / channel.bandwidth
        assert seconds <= end_seconds(ENDS.receive, 2**26) or bandwidth == pytest.approx(
            channel.bandwidth, rel=1e-3
        )


def test_a_channel_with_a_path_is_not_measured():
    path = Channel("path", ("x", "y"), ("x", "y"), path=("bus",))
    devices = tuple(Device(name, "k", 1) for name in ("x", "y"))
    cluster = Cluster("bus", devices, (path,), links=(Link("bus", 1e9),))
    with pytest.raises(PlacetoError, match="channel 'path' has a path, whose links"):
        fit_channels(cluster, lambda source, destination: [])


def test_pieces_by_hand():
    # 100 us and 1 ns a byte up to 1 MB; from there on 0.5 ns a byte alone.
    sizes = [0, 500_000, 1_000_000, 10_000_000, 20_000_000]
    small, large = pieces(sizes, [1e-4, 6e-4, 1.1e-3, 5e-3, 1e-2])
    assert (small.from_bytes, large.from_bytes) == (0, 1_000_000)
    assert (small.seconds, small.seconds_per_byte) == pytest.approx((1e-4, 1e-9))
    assert end_seconds((small, large), 20_000_000) == pytest.approx(1e-2, rel=0.1)
    assert end_seconds((small, large), 999_999) == pytest.approx(1.1e-3, rel=1e-3)
    assert end_seconds((), 5) == 0.0
    # What is below nothing is noise.
    assert end_seconds(pieces(sizes, [-1e-4] * 5), 1000) == 0.0


@pytest.fixture
def two(monkeypatch, tmp_path):
    """What is found of ends where two workers' steps take what they would by simulation."""

    def run(channel: Channel, product: float = 1e-3, slower: float = 1.0):
        cluster = load_cluster("local-2")
        like = {name: getattr(channel, name) for name in ("bandwidth", "send", "receive")}
        channels = tuple(replace(each, latency_seconds=1e-4, **like) for each in cluster.channels)
        truth = replace(cluster, channels=channels)
        passes = itertools.count()

        def run(exchange, runtime, source, other, effort):
            graph = exchange.problem.graph
            times = {kind: 1e3 * product * each for kind, each in graph.op_seconds.items()}
            problem = PlacementProblem(replace(graph, op_seconds=times), truth, "none")
            both = []
            for consumer in (source, other):
                side = {"h": source, "t": other, "u": consumer}
                devices = np.array([side[name[0]] for name in graph.op_names])
                both.append(simulate(problem, devices[np.argsort(problem.op_group)]).step_time)
            # A pass in five takes a fifth longer.
            slow = 1.2 if next(passes) % 5 == 4 else 1.0
            return slow * np.array(both)[:, None]

        monkeypatch.setattr(BusyExchange, "run", run)
        both = slower * product, slower * product
        return measure_ends(SimpleNamespace(cluster=cluster), 0, 1, both, tmp_path)

    return run


@pytest.mark.parametrize("product", [2e-4, 1e-3, 5e-3])
def test_ends_are_what_transfers_cost_who_computes(two, product):
    found = two(with_ends(Channel("any", ("x",), ("y",), 1e9)), product)
    for size in (4, 2**16, 2**20, 2**24):
        for costs, wanted in ((found.send, ENDS.send), (found.receive, ENDS.receive)):
            assert end_seconds(costs, size) == pytest.approx(end_seconds(wanted, size), rel=0.15)


def test_ends_are_measured_in_what_is_computed_meanwhile(two):
    channel = with_ends(Channel("any", ("x",), ("y",), 1e9))
    found, slower = two(channel), two(channel, slower=1.5)
    for costs, others in ((found.send, slower.send), (found.receive, slower.receive)):
        for size in (2**16, 2**20, 2**24):
            assert end_seconds(others, size) == pytest.approx(1.5 * end_seconds(costs, size), 0.02)


def test_transfers_that_cost_their_ends_nothing(two):
    assert two(Channel("any", ("x",), ("y",), 1e9)) is None


def test_the_step_that_is_run_is_the_one_that_is_simulated(tmp_path):
    from tensorflow.core.framework.graph_pb2 import GraphDef

    exchange = BusyExchange(load_cluster("local-2"), Shape(3, 400, 2, 1), tmp_path)
    graph = exchange.problem.graph
    (path,) = tmp_path.glob("*.graphdef")
    nodes = {node.name: node for node in GraphDef.FromString(path.read_bytes()).node}
    assert [nodes[name].op for name in graph.op_names] == list(graph.op_types)
    simulated = {
        (graph.op_names[producer], graph.op_names[consumer])
        for producer, consumer in zip(*graph.op_edges, strict=True)
    }
    made = {
        (tensor.removeprefix("^").partition(":")[0], name)
        for name in graph.op_names
        for tensor in nodes[name].input
    }
    # Matrices are read once, and are there from the start.
    starts = {"here_matrix", "there_matrix", "here_variable", "here_read", "there_read"}
    assert {edge for edge in made if edge[0] not in starts} == {
        edge for edge in simulated if edge[0] not in starts
    }
    assert graph.op_types.count("MatMul") == (3 + 1) * (2 + 1)


@given(st.floats(0, 1e-4), st.floats(0, 1e-2), st.lists(st.integers(50, 9000), min_size=1))
def test_launch_overhead_of_exact_steps(op_overhead, step_overhead, sizes):
    runs = [
        KindRun(np.full(count, each / count), 0.1, each + count * op_overhead + step_overhead, 1.0)
        for count, each in zip(sizes, np.linspace(0.1, 1.0, len(sizes)), strict=True)
    ]
    launch = fit_overheads(runs, step_overhead)
    assert launch.op_overhead == pytest.approx(op_overhead, rel=1e-6, abs=1e-12)
    assert launch.step_overhead == step_overhead


def test_stretch_by_hand():
    launch = StepOverheads(op_overhead=1e-3, step_overhead=0.1)
    # 1 s less 0.1 s and 100 ops of 1 ms: 0.8 s for kernels of 0.5 s.
    assert KindRun(np.full(100, 5e-3), 0.9, 1.0, 0.0).stretch(launch) == pytest.approx(1.6)
    assert KindRun(np.full(100, 5e-3), 0.2, 0.2, 0.0).stretch(launch) == 1.0
    assert KindRun(np.zeros(100), 1.0, 1.0, 0.0).stretch(launch) == 1.0


def test_how_much_faster_a_device_is_alone_by_hand():
    launch = StepOverheads(op_overhead=1e-3, step_overhead=0.1)
    # Of 0.8 s and of 1 s, both less 0.2 s: 0.6 s alone for what takes 0.8 s beside others.
    assert KindRun(np.full(100, 5e-3), 0.8, 1.0, 0.0).alone(launch) == pytest.approx(0.75)
    assert KindRun(np.full(100, 5e-3), 1.1, 1.0, 0.0).alone(launch) == 1.0  # that is noise
    assert KindRun(np.full(100, 5e-3), 0.1, 1.0, 0.0).alone(launch) == 1.0
    assert KindRun(np.full(100, np.inf), 0.8, 1.0, 0.0).alone(launch) == 1.0
