"""Plans of pipelines against all splits that there are."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem
from placeto.cluster import Channel, Cluster, Device
from placeto.extraction import extract
from placeto.objective import overflow
from placeto.placement.pipeline_plan import stage_units
from placeto.placers.pipeline import plan_pipeline
from placeto.simulation import simulate
from placeto.simulation.stage_memory import stage_memory
from placeto.simulation.stages import run_stages, stages_of

MODELS = "tests.extraction.pytorch.models"


@pytest.fixture(scope="module")
def graph():
    source = f"{MODELS}:deep?batch=64&microbatches=4&loss=mse"
    return extract(source).graph


def cluster(*kinds, memory=(2**34,) * 3, bandwidth=1e11):
    names = tuple(f"cuda:{number}" for number in range(len(kinds)))
    devices = tuple(map(Device, names, kinds, memory))
    return Cluster("some", devices, (Channel("all", names, names, bandwidth),))


def with_fast_cpu(graph):
    """The graph with a CPU ten times as fast as a K80, which would be worth to use."""
    seconds = graph.op_seconds | {"cpu": graph.op_seconds["k80"] / 10}
    return replace(graph, op_seconds=seconds)


def all_splits(problem):
    """Every way to cut the units into at most one stretch a device, on all devices in any order."""
    units, devices = problem.num_groups, range(problem.num_devices)
    for count in range(1, problem.num_devices + 1):
        for cuts in itertools.combinations(range(1, units), count - 1):
            stage = np.searchsorted(cuts, np.arange(units), side="right")
            for order in itertools.permutations(devices, count):
                yield np.array(order)[stage]


def best_of_all(graph, placed_on, orders=("gpipe", "1f1b")):
    """The least bytes over the memory, and then seconds, of all splits."""
    units = stage_units(graph).of_op
    found = []
    for order in orders:
        problem = PlacementProblem(graph, placed_on, units, order=order)
        many = np.stack(list(all_splits(problem)))
        peaks = np.stack([stage_memory(problem, each, order) for each in many])
        over = overflow(problem, peaks).tolist()
        steps = [run_stages(stages_of(problem, each), order) for each in many]
        found += zip(over, [step.seconds for step in steps], strict=True)
    return min(found)


@pytest.mark.parametrize("kinds", [("k80", "k80"), ("v100", "k80"), ("v100", "k80", "k80")])
@pytest.mark.parametrize("bandwidth", [1e11, 1e9])
def test_no_split_is_better(graph, kinds, bandwidth):
    placed_on = cluster(*kinds, memory=(2**34,) * len(kinds), bandwidth=bandwidth)
    plan, placement = plan_pipeline(graph, placed_on)
    over, seconds = best_of_all(graph, placed_on)
    assert over == 0
    assert placement.feasible
    assert plan.step_time == placement.step_time == pytest.approx(seconds, rel=1e-9)


def test_what_fits_goes_before_what_is_fast(graph):
    roomy = cluster("k80", "k80")
    peak = plan_pipeline(graph, roomy)[0].peak_memory
    for share in (0.9, 0.7, 0.5):
        tight = cluster("k80", "k80", memory=(int(share * max(peak)),) * 2)
        plan, _ = plan_pipeline(graph, tight)
        over, seconds = best_of_all(graph, tight)
        assert plan.feasible == (over == 0)
        if over == 0:
            assert plan.step_time == pytest.approx(seconds, rel=1e-9)


def test_buffers_count_where_memory_is_short(graph):
    plan, placement = plan_pipeline(graph, cluster("k80", "k80"))
    assert plan.peak_memory == tuple(placement.peak_memory[:2])
    whole, fullest = max(plan.peak_memory), int(placement.peak_memory.argmax())
    without = simulate(placement.problem, placement.devices).peak_memory[fullest]
    # Room for all but buffers: op by op it would fit.
    tight = cluster("k80", "k80", memory=(int(without + whole) // 2,) * 2)
    assert without < tight.devices[0].memory_bytes < whole
    other, _ = plan_pipeline(graph, tight)
    assert other.split_points != plan.split_points or not other.feasible


def test_the_schedule_that_is_asked_for(graph):
    placed_on = cluster("k80", "k80")
    for schedule in ("gpipe", "1f1b"):
        plan, placement = plan_pipeline(graph, placed_on, schedule)
        assert plan.schedule == placement.problem.order == schedule
        assert plan.step_time == pytest.approx(best_of_all(graph, placed_on, [schedule])[1])


def test_one_stage_where_no_split_is_worth_its_price(graph):
    plan, _ = plan_pipeline(graph, cluster("k80", "k80", bandwidth=1e3))
    assert plan.split_points == ()
    assert plan.step_time == pytest.approx(plan.single_device_step_time)
    assert [stage.modules for stage in plan.stages] == [tuple(map(str, range(13)))]


def test_what_is_told_of_a_plan(graph):
    plan, placement = plan_pipeline(graph, cluster("v100", "k80"))
    assert plan.examples_per_second == pytest.approx(64 / plan.step_time)
    assert plan.single_device_step_time > plan.step_time
    assert 0 < plan.bubble < 1
    # The faster device has more to do.
    work = placement.problem.group_seconds[:, 0]
    shares = [work[placement.devices == number].sum() for number in range(2)]
    assert shares[0] > 2 * shares[1]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_the_cpu_beside_gpus_has_no_stage(graph, schedule):
    box = cluster("cpu", "k80", "k80")
    plan, placement = plan_pipeline(with_fast_cpu(graph), box, schedule)
    names = ("cuda:1", "cuda:2")
    gpus = Cluster("some", box.devices[1:], (Channel("all", names, names, 1e11),))
    expected, _ = plan_pipeline(graph, gpus, schedule)
    assert plan == expected
    assert {stage.device for stage in plan.stages} == set(names)
    assert placement.problem.cluster == gpus


def test_one_gpu_beside_the_cpu_is_not_split(graph):
    plan, _ = plan_pipeline(with_fast_cpu(graph), cluster("k80", "cpu"))
    assert [stage.device for stage in plan.stages] == ["cuda:0"]
    assert plan.step_time == pytest.approx(plan.single_device_step_time)
    assert plan.step_time == pytest.approx(graph.op_seconds["k80"].sum())
