"""What each strategy would do, by hand and by what must hold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError
from placeto.cluster import Channel, Cluster, Device
from placeto.extraction import extract
from placeto.heuristics.initial import all_on
from placeto.placers.pipeline import plan_pipeline
from placeto.placers.strategies import (
    STRATEGIES,
    Outlook,
    divided,
    in_sequence,
    one_after_the_other,
    outlook,
    ring_seconds,
    verdict,
)
from placeto.simulation import simulate
from placeto.support.errors import NotApplicable
from tests.builders import make_graph

MODELS = "tests.extraction.pytorch.models"


@pytest.fixture(scope="module")
def graph():
    return extract(f"{MODELS}:deep?batch=64&microbatches=4&loss=mse").graph


def cluster(*kinds, memory=2**34, bandwidth=1e12, latency=0.0):
    names = tuple(f"cuda:{number}" for number in range(len(kinds)))
    devices = tuple(Device(name, kind, memory) for name, kind in zip(names, kinds, strict=True))
    channels = tuple(
        Channel(f"{a} to {b}", (a,), (b,), bandwidth, latency)
        for a, b in itertools.permutations(names, 2)
    )
    return Cluster("some", devices, channels)


def test_a_ring_by_hand():
    # Each of n devices sends an n-th, 2 (n - 1) times, all of them at once.
    two, three = (cluster(*["k80"] * n, bandwidth=100.0, latency=0.5) for n in (2, 3))
    assert ring_seconds(two, [0, 1], 600) == pytest.approx(2 * (300 / 100 + 0.5))
    assert ring_seconds(three, [0, 1, 2], 600) == pytest.approx(4 * (200 / 100 + 0.5))
    assert ring_seconds(three, [2, 0], 600) == pytest.approx(2 * (300 / 100 + 0.5))
    assert ring_seconds(three, [1], 600) == 0
    # On one bus the three parts of each of four steps go one after the other.
    names = ("a", "b", "c")
    devices = tuple(Device(name, "k80", 2**34) for name in names)
    bus = Cluster("bus", devices, (Channel("bus", names, names, 100.0),))
    assert ring_seconds(bus, [0, 1, 2], 600) == pytest.approx(4 * 3 * 2)


@pytest.mark.parametrize("seconds", [(1.0, 1.0), (1.0, 3.0), (2.0, 3.0, 7.0)])
def test_units_are_divided_so_that_the_last_is_done_soonest(seconds):
    for units in range(1, 9):
        found = divided(np.array(seconds), units)
        assert found.sum() == units
        least = min(
            max(np.array(shares) * seconds)
            for shares in itertools.product(range(units + 1), repeat=len(seconds))
            if sum(shares) == units
        )
        assert (found * seconds).max() == least


def test_no_microbatch_begins_before_the_one_before_it_is_through(graph):
    chained = one_after_the_other(graph)
    placed_on = cluster("k80", "k80", bandwidth=1e15)
    problem = PlacementProblem(chained, placed_on, "none", order="1f1b")
    devices = np.random.default_rng(0).integers(2, size=problem.num_groups)
    timing = simulate(problem, devices)
    start, finish = timing.start, timing.finish
    for number in range(1, 4):
        before = graph.microbatch == number - 1
        assert start[graph.microbatch == number].min() >= finish[before].max()


def test_in_sequence_by_hand():
    # b's and c's 100 bytes go to the other device once each, c's to two ops; d needs a device more.
    graph = make_graph(
        {"a": 1.0, "b": 2.0, "c": 4.0, "d": 8.0, "e": 16.0},
        [("a", 7, ["b"]), ("b", 100, ["c"]), ("c", 100, ["d", "e"]), ("a", 0, ["e"])],
    )
    placed_on = cluster("k", "k", bandwidth=100.0, latency=0.5)
    problem = PlacementProblem(graph, placed_on, "none")
    devices = np.array([0, 0, 1, 0, 0])[np.argsort(problem.op_group)]
    assert in_sequence(problem, devices) == pytest.approx(31 + 2 * 1.5)


def test_naive_is_slower_than_a_pipeline_of_equal_devices(graph):
    placed_on = cluster("k80", "k80", bandwidth=1e15)
    single, naive, pipeline = (
        outlook(graph, placed_on, name) for name in ("single", "naive", "pipeline")
    )
    seconds = graph.op_seconds["k80"]
    updates = seconds[[kind == "momentum" for kind in graph.op_types]].sum()
    assert single.step_time == pytest.approx(seconds.sum())
    # Both devices update their parameters at once.
    assert single.step_time - updates < naive.step_time < single.step_time
    assert pipeline.step_time < naive.step_time
    assert len(naive.devices) == 2


@pytest.mark.parametrize("microbatches", [1, 4])
def test_data_parallel_by_hand(microbatches):
    source = f"{MODELS}:deep?batch=64&microbatches={microbatches}&loss=mse"
    graph = extract(source).graph
    placed_on = cluster("k80", "k80", bandwidth=1e9)
    found = outlook(graph, placed_on, "data-parallel")
    seconds = graph.op_seconds["k80"]
    update = np.array([kind == "momentum" for kind in graph.op_types])
    gradients = int(graph.param_bytes[[kind == "parameter" for kind in graph.op_types]].sum())
    ring = 2 * (-(-gradients // 2) / 1e9)
    expected = seconds[~update].sum() / 2 + ring + seconds[update].sum()
    assert found.step_time == pytest.approx(expected)
    assert found.how.startswith("2/2 microbatches" if microbatches > 1 else "32/32 examples")
    order = "1f1b" if microbatches > 1 else "fifo"
    problem = PlacementProblem(graph, placed_on, "none", order=order)
    alone = int(simulate(problem, all_on(problem, 0)).peak_memory[0])
    if microbatches > 1:
        assert found.peak_memory == (alone + gradients,) * 2
    else:
        assert found.peak_memory[0] < alone + gradients


def test_a_slow_third_device_is_left_alone(graph):
    found = outlook(graph, cluster("v100", "v100", "k80"), "data-parallel")
    assert found.devices == ("cuda:0", "cuda:1")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_cpu_beside_gpus_computes_nothing(graph, strategy):
    # It is fast and large, and would be taken for each strategy.
    seconds = graph.op_seconds | {"cpu": graph.op_seconds["k80"] / 10}
    box, gpus = cluster("k80", "k80", "cpu"), cluster("k80", "k80")
    found = outlook(replace(graph, op_seconds=seconds), box, strategy)
    assert found == outlook(graph, gpus, strategy)
    cpus = replace(graph, op_seconds=graph.op_seconds | {"cpu": graph.op_seconds["k80"]})
    assert outlook(cpus, cluster("cpu", "cpu"), strategy) == found


def of(strategy, step_time, feasible=True):
    return Outlook(strategy, ("cuda:0",), step_time, (1,), feasible)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([of("single", 2.0), of("pipeline", 1.0)], "split: pipeline is 2.00 times as fast"),
        ([of("single", 2.0), of("pipeline", 1.98)], "do not split: pipeline is 1% faster"),
        ([of("single", 2.0), of("naive", 3.0)], "do not split: nothing is faster than cuda:0"),
        ([of("single", 2.0, False), of("naive", 3.0)], "it does not fit on one device, and naive"),
        ([of("pipeline", 3.0)], "pipeline is the fastest that fits"),
        ([of("single", 2.0, False)], "nothing fits"),
    ],
)
def test_verdicts(found, expected):
    assert verdict(found).startswith(expected)


def test_what_cannot_be_compared(graph):
    with pytest.raises(NotApplicable, match="cluster 'some' has one device"):
        outlook(graph, cluster("k80"), "naive")
    with pytest.raises(NotApplicable, match="cluster 'some' has one device beside the CPU"):
        outlook(graph, cluster("k80", "cpu"), "data-parallel")
    one = extract(f"{MODELS}:mlp").graph
    with pytest.raises(NotApplicable, match="one microbatch; extract it with"):
        outlook(one, cluster("k80", "k80"), "pipeline")
    with pytest.raises(PlacetoError, match="does not say which modules"):
        outlook(make_graph({"a": 1.0}, []), cluster("k80", "k80"), "single")


def test_one_process_alone_is_faster_than_beside_others(graph):
    placed_on = cluster("k80", "k80", bandwidth=1e15)
    costs = {"costs": {"kinds": {"k80": {"alone": 0.75}}}}
    quiet = replace(graph, meta={**graph.meta, **costs})
    for name, factor in {"single": 0.75, "naive": 0.75, "pipeline": 1, "data-parallel": 1}.items():
        expected = factor * outlook(graph, placed_on, name).step_time
        assert outlook(quiet, placed_on, name).step_time == pytest.approx(expected, rel=1e-6)
    plan, _ = plan_pipeline(quiet, placed_on)
    assert plan.single_device_step_time == pytest.approx(0.75 * graph.op_seconds["k80"].sum())
