"""Named instances: what is said of them holds, and placements are judged by their rules."""

import json
from collections import Counter
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from placeto import Placement, PlacetoError, load_instance, simulate
from placeto.grouping import group_ops
from placeto.heuristics.initial import all_on
from placeto.zoo import instances as module
from placeto.zoo.instances import instances, standings

SMALL, PAPERS, PIPELINED = "layered_03-k80x4", "rnnlm-k80x2-cpu-papers", "ptb_small_m8-k80x2"


def saved(problem, devices, path):
    schedule = simulate(problem, devices)
    Placement(problem, devices, schedule.step_time, schedule.peak_memory, schedule.feasible).save(
        path
    )
    return path


def test_the_best_known_are_what_is_said_of_them():
    for name, instance in instances().items():
        problem, devices = instance.best_placement()
        schedule = simulate(problem, devices)
        assert schedule.step_time == pytest.approx(instance.best.step_time, rel=1e-12), name
        assert schedule.feasible, name
        assert 0 < instance.lower_bound <= schedule.step_time * (1 + 1e-9), name
        if instance.grouping == "papers":
            groups = group_ops(problem.graph, "papers")
            of_op = devices[problem.op_group]
            assert len(set(zip(groups.tolist(), of_op.tolist(), strict=True))) == groups.max() + 1


def test_they_are_of_all_kinds():
    every = list(instances().values())
    assert len(every) == 40
    assert Counter(each.grouping for each in every) == {"papers": 12, "none": 28}
    assert sum(each.graph.endswith("_m8") for each in every) == 8
    hosts = ("n1-p100x2-4", "p3.8xlarge-2")
    assert sum(each.cluster in hosts for each in every) >= 6
    assert {each.name for each in every} == set(instances())


@pytest.mark.parametrize("name", [SMALL, PAPERS, PIPELINED])
def test_the_best_stands_as_good_as_itself(tmp_path, name):
    instance = load_instance(name)
    found = standings(saved(*instance.best_placement(), tmp_path / "best.json"))
    (own,) = (each for each in found if each.instance.name == name)
    assert own.verdict in ("as good", "optimal")
    assert own.gap == pytest.approx(0, abs=1e-9)


def test_what_is_worse_or_better_is_said(tmp_path, monkeypatch):
    instance = load_instance(SMALL)
    problem = instance.problem("auto")
    devices = all_on(problem, 0)
    path = saved(problem, devices, tmp_path / "single.json")
    (found,) = standings(path)
    step_time = simulate(problem, devices).step_time
    assert found.gap == pytest.approx(step_time / instance.best.step_time - 1)
    assert found.verdict == f"{found.gap:.2%} worse"

    def known(seconds, bound):
        best = msgspec.structs.replace(instance.best, step_time=seconds)
        changed = msgspec.structs.replace(instance, best=best, lower_bound=bound)
        monkeypatch.setattr(module, "instances", lambda: {SMALL: changed})
        (standing,) = standings(path)
        return standing.verdict

    assert known(1.01 * step_time, step_time / 2) == "better"
    assert known(step_time, step_time / 2) == "as good"
    assert known(step_time, step_time) == "optimal"


def test_the_papers_groups_stay_together(tmp_path):
    instance = load_instance(PAPERS)
    problem, devices = instance.best_placement()
    apart = replace(problem, grouping="none")
    pairs = np.unique(np.stack([problem.op_group, apart.op_group]), axis=1)
    largest = int(np.argmax(np.bincount(pairs[0])))  # of several groups of ops that must share
    assert (pairs[0] == largest).sum() > 1
    each = np.zeros(apart.num_groups, dtype=np.int64)
    each[apart.op_group] = devices[problem.op_group]
    moved = pairs[1][pairs[0] == largest][0]
    each[moved] = (each[moved] + 1) % problem.num_devices
    with pytest.raises(PlacetoError, match="parts ops that rnnlm-k80x2-cpu-papers keeps together"):
        standings(saved(apart, each, tmp_path / "parted.json"), PAPERS)


def test_steps_of_one_microbatch_are_simulated_in_fifo(tmp_path):
    problem = load_instance(SMALL).problem(order="critical-path")
    path = saved(problem, all_on(problem, 0), tmp_path / "ranked.json")
    with pytest.raises(PlacetoError, match="simulated in fifo"):
        standings(path)


def test_a_pipelined_step_may_have_any_order(tmp_path):
    instance = load_instance(PIPELINED)
    for order in ("gpipe", "1f1b"):
        problem = instance.problem(order=order)
        (found,) = standings(saved(problem, all_on(problem, 0), tmp_path / "p.json"))
        assert found.step_time == simulate(problem, all_on(problem, 0)).step_time


def test_whose_placement_it_is_can_be_said(tmp_path):
    problem, devices = load_instance(SMALL).best_placement()
    path = saved(problem, devices, tmp_path / "whole.json")
    op_devices = json.loads(path.read_text())["op_devices"]
    bare = tmp_path / "bare.json"
    bare.write_text(
        json.dumps({"format": "placeto.placement", "version": 1, "op_devices": op_devices})
    )
    with pytest.raises(PlacetoError, match="places None on None, which no instance does"):
        standings(bare)
    (found,) = standings(bare, SMALL)
    assert found.gap == pytest.approx(0, abs=1e-9)
    with pytest.raises(PlacetoError, match="no instance 'nobody'"):
        standings(bare, "nobody")
