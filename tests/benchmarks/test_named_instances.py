"""The study of named instances: what it keeps."""

from types import SimpleNamespace

import numpy as np

from benchmarks import named_instances
from benchmarks.named_instances import better, every, markdown, take
from benchmarks.output import RESULTS
from placeto import Placement, load_instance, simulate
from placeto.heuristics.initial import all_on
from placeto.support.documents import read_document
from placeto.support.files import read_json
from placeto.zoo.instances import FORMAT, VERSION, InstancesDocument, instances

SMALL = "layered_03-k80x4"


def test_all_that_are_searched_are_known():
    assert [each.name for each in every()] == list(instances())


def test_only_what_is_better_is_kept(monkeypatch):
    instance = load_instance(SMALL)
    problem = instance.problem("auto")
    assert better(instance, problem, all_on(problem, 0), "me") is instance
    assert better(instance, *instance.best_placement(), "me") is instance
    unknown = named_instances.msgspec.structs.replace(instance, best=named_instances.NOBODY)
    found = better(unknown, problem, all_on(problem, 1), "me")
    assert found.best.step_time == simulate(problem, all_on(problem, 1)).step_time
    assert found.best.found_by == "me"
    full = SimpleNamespace(step_time=1e-9, feasible=False)
    monkeypatch.setattr(named_instances, "simulate", lambda problem, devices: full)
    assert better(instance, problem, all_on(problem, 0), "me") is instance
    again, devices = found.best_placement()
    assert np.array_equal(devices, all_on(again, 1))


def test_placements_of_others_are_taken_in(tmp_path, monkeypatch, capsys):
    instance = load_instance(SMALL)
    worse = instance.problem("auto")
    known = better(
        named_instances.msgspec.structs.replace(instance, best=named_instances.NOBODY),
        worse, all_on(worse, 0), "somebody",
    )  # fmt: skip
    path = tmp_path / "instances.json.gz"
    monkeypatch.setattr(named_instances, "PATH", path)
    monkeypatch.setattr(named_instances, "instances", lambda: {SMALL: known})
    problem, devices = instance.best_placement()
    schedule = simulate(problem, devices)
    placement = Placement(problem, devices, schedule.step_time, schedule.peak_memory, True)
    placement.save(tmp_path / "sent.json")
    take([str(tmp_path / "sent.json")], "me, 2026")
    document = read_document(path, InstancesDocument, FORMAT, VERSION, str(path))
    (after,) = document.instances
    assert after.best.found_by == "me, 2026"
    assert after.best.step_time == schedule.step_time
    assert after.best.op_devices == instance.best.op_devices
    assert SMALL in capsys.readouterr().out


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "named_instances.json")
    page = (RESULTS / "named_instances.md").read_text()
    assert page == markdown(document["rows"], instances())
