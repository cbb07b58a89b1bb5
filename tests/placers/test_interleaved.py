"""Interleaved pipelines against PyTorch's schedule, by hand, and against all cuts."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

from placeto import PlacementProblem, PlacetoError
from placeto.placers.interleaved import best_interleaved, divides, stretches, turns
from placeto.placers.pipeline import plan_pipeline
from placeto.simulation import simulate
from placeto.simulation.stages import interleaved_passes, run_stages, stages_of
from tests.builders import make_cluster, make_graph
from tests.placers.test_pipeline import cluster, graph  # noqa: F401 (a fixture)


def layers(count, microbatches, devices, seconds=None):
    """Layers of 1 s forward and 2 s back, or their multiples; a group is a layer."""
    seconds = seconds or [1.0] * count
    work, tensors, microbatch, phase = {}, [], [], []
    for part in range(microbatches):
        there = [f"{part}/f{layer}" for layer in range(count)]
        back = [f"{part}/b{layer}" for layer in reversed(range(count))]
        work |= dict(zip(there, seconds, strict=True))
        work |= dict(zip(back, [2 * each for each in reversed(seconds)], strict=True))
        tensors += [(one, 0, [other]) for one, other in itertools.pairwise([*there, *back])]
        microbatch += [part] * (2 * count)
        phase += [0] * count + [1] * count
    copy_of = [-1] * (2 * count) + list(range(2 * count)) * (microbatches - 1)
    made = replace(make_graph(work, tensors), microbatch=microbatch, copy_of=copy_of, phase=phase)
    group = [*range(count), *reversed(range(count))] * microbatches
    return PlacementProblem(made, make_cluster(devices), np.array(group))


@given(
    devices=st.integers(2, 6), chunks=st.integers(2, 4), microbatches=st.integers(1, 30),
    data=st.data(),
)  # fmt: skip
def test_each_device_does_what_pytorch_has_it_do(devices, chunks, microbatches, data):
    rounds = max(1, microbatches // devices)
    assert divides(microbatches, devices) == (microbatches % rounds == 0)
    if not divides(microbatches, devices):
        return
    schedule = SimpleNamespace(
        n_local_stages=chunks, microbatches_per_round=microbatches // rounds,
        pp_group_size=devices, _n_microbatches=microbatches,
    )  # fmt: skip
    device = data.draw(st.integers(0, devices - 1))
    theirs = ScheduleInterleaved1F1B._calculate_single_rank_operations(schedule, device)
    assert [
        (each.stage, each.microbatch, "FORWARD" if each.forward else "FULL_BACKWARD")
        for each in interleaved_passes(device, devices, chunks, microbatches)
    ] == [
        (each.stage_index, each.microbatch_index, each.computation_type.name)
        for each in theirs
        if each is not None
    ]


def test_an_op_has_its_turn_with_its_pass():
    problem = layers(4, 4, 2)
    part = np.where(problem.op_group == 2, -1, problem.graph.microbatch)
    made = SimpleNamespace(num_microbatches=4, phase=problem.graph.phase, microbatch=part)
    ranks = turns(made, problem.op_group, 2)
    for device in range(2):
        passes = [
            next(
                number
                for number in np.flatnonzero(made.microbatch == each.microbatch).tolist()
                if problem.op_group[number] == each.stage
                and (made.phase[number] == 0) == each.forward
            )
            for each in interleaved_passes(device, 2, 2, 4)
            if each.stage != 2
        ]
        assert (np.diff(ranks[passes]) > 0).all()
        assert ranks[passes].min() > 0
    # What is of no microbatch goes before all.
    assert (ranks[problem.op_group == 2] == 0).all()


@pytest.mark.parametrize("microbatches", [2, 4, 8])
def test_the_pipeline_fills_sooner_by_hand(microbatches):
    # Two stages a device: 6 s of a microbatch on each, and the second one waits for half of what
    # it waits for with one stage, 1 s there and 2 s back. With one: 2 and 4 s.
    problem = layers(4, microbatches, 2)
    found = best_interleaved(problem)
    assert found.devices.tolist() == [0, 1, 0, 1]
    assert found.worth == (0, 6 * microbatches + 3)
    plain = simulate(replace(problem, order="1f1b"), [0, 0, 1, 1])
    assert plain.step_time == 6 * microbatches + 6


def test_uneven_layers_against_all_cuts():
    problem = layers(9, 4, 2, [1.0, 3.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0, 2.0])
    best = np.inf
    for count in (4, 6, 8):
        for cuts in itertools.combinations(range(1, 9), count - 1):
            stage = np.searchsorted(cuts, np.arange(9), side="right")
            step = run_stages(stages_of(problem, stage % 2), "interleaved")
            best = min(best, step.seconds)
    assert best <= best_interleaved(problem).worth[1] <= 1.02 * best


def test_there_may_be_none():
    assert best_interleaved(layers(3, 4, 2)) is None
    assert best_interleaved(layers(6, 4, 1)) is None
    assert best_interleaved(layers(6, 3, 2)) is not None
    assert best_interleaved(layers(8, 7, 2)) is None  # three rounds of seven


def test_a_plan_has_several_stages_a_device(graph):  # noqa: F811
    plan, placement = plan_pipeline(graph, cluster("k80", "k80"), "interleaved")
    assert plan.schedule == "interleaved"
    assert plan.processes == 2
    assert plan.stages_per_process in (2, 3, 4)
    assert len(plan.stages) == 2 * plan.stages_per_process
    assert [each.device for each in plan.stages[:4]] == ["cuda:0", "cuda:1"] * 2
    assert plan.step_time == placement.step_time
    assert plan.step_time < plan_pipeline(graph, cluster("k80", "k80"), "1f1b")[0].step_time


@pytest.mark.parametrize("price", [0.0, 10.0])
def test_it_is_chosen_where_it_is_faster_by_so_much(graph, price, monkeypatch):  # noqa: F811
    monkeypatch.setattr("placeto.placers.pipeline._TURNS", price)
    pair = cluster("k80", "k80")
    plan, placement = plan_pipeline(graph, pair)
    assert (plan.schedule == "interleaved") == (price == 0.0)
    asked = plan_pipeline(graph, pair, plan.schedule)[0]
    assert plan.step_time == placement.step_time == asked.step_time


@pytest.mark.parametrize("microbatches", [1, 4])
def test_groups_that_something_passes_by_are_joined(microbatches):
    # 0 also sends to 2, and 3 to 5: no cut before 2 or 5. 4 to 5 alone is no way around.
    names = [f"{part}/{layer}" for part in range(microbatches) for layer in range(7)]
    tensors = [
        (f"{part}/{one}", 0, [f"{part}/{other}" for other in others])
        for part in range(microbatches)
        for one, others in enumerate([[1, 2], [2], [3], [4, 5], [5], [6]])
    ]
    made = make_graph(dict.fromkeys(names, 1.0), tensors)
    group = np.tile(np.arange(7), microbatches)
    problem = PlacementProblem(made, make_cluster(2), group)
    assert stretches(problem).tolist() == [0, 1, 1, 2, 3, 3, 4]


def test_cuts_that_nothing_passes_are_found():
    # Balanced cuts, and all that are near, part layers 2 and 3, by which layer 1 sends to 4.
    problem = layers(6, 4, 2, [1.0, 1.0, 8.0, 8.0, 1.0, 1.0])
    plain = problem.graph
    number = {name: op for op, name in enumerate(plain.op_names)}
    tensor = {int(op): tensor for tensor, op in enumerate(plain.tensor_producer)}
    made = replace(
        plain,
        edge_tensor=np.append(plain.edge_tensor, [tensor[number[f"{n}/f1"]] for n in range(4)]),
        edge_consumer=np.append(plain.edge_consumer, [number[f"{n}/f4"] for n in range(4)]),
    )
    problem = PlacementProblem(made, problem.cluster, problem.op_group)
    found = best_interleaved(problem)
    assert found.devices.tolist() == [0, 1, 0, 0, 0, 1]
    assert found.problem.num_groups == 6
    assert found.worth == (0, run_stages(stages_of(problem, found.devices), "interleaved").seconds)


def test_too_many_devices_for_the_modules(graph):  # noqa: F811
    many = cluster(*["k80"] * 7, memory=(2**34,) * 7)
    with pytest.raises(PlacetoError, match="no interleaved schedule has 4 microbatches"):
        plan_pipeline(graph, many, "interleaved")
