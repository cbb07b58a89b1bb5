"""`placeto place --pipeline --measure`: plans that PyTorch runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from placeto import load_cluster, load_graph, load_pipeline, save_cluster, save_graph
from placeto.extraction import extract
from placeto.measurement.pytorch import pipelines
from placeto.measurement.pytorch.detect import detect_cluster

SOURCE = "tests.extraction.pytorch.models:deep?batch=8&loss=mse"
MEASURE = ("--cluster", "two.yaml", "--pipeline", "plan.json", "--measure")


@pytest.fixture
def two(folder):
    """A cluster file of two CPU processes; `m2.json.gz` and `m4.json.gz` of one module."""
    save_cluster(detect_cluster("two", processes=2), "two.yaml")
    for count in (2, 4):
        save_graph(extract(f"{SOURCE}&microbatches={count}").graph, f"m{count}.json.gz")


def takes(seconds):
    """Runs that are pretended: (schedule, microbatches) -> the samples, or why there are none."""
    asked = []

    def run(source, plans, alone, steps, progress):
        assert source.startswith(SOURCE)
        device, counts = alone
        runs = [pipelines.PipelineRun(plan, "", plan.microbatches) for plan in plans]
        runs += [pipelines.PipelineRun(None, device, count) for count in counts]
        for each in runs:
            key = each.plan and each.plan.schedule, each.microbatches
            asked.append(key)
            found = seconds[key]
            if isinstance(found, str):
                each.reason = found
            else:
                each.samples = [found] * steps
        return runs, False

    return run, asked


def test_two_processes_run_a_plan(placeto, two):
    found = placeto("place", "m2.json.gz", *MEASURE, "3", "--schedule", "1f1b", "--json")
    assert found.status == 0
    row, plan = found.document, load_pipeline("plan.json")
    pipeline, *alone = row["plans"]
    assert (pipeline["schedule"], pipeline["microbatches"], pipeline["kept"]) == ("1f1b", 2, True)
    assert [(each["schedule"], each["microbatches"]) for each in alone] == [(None, 1), (None, 2)]
    assert all(len(each["samples"]) == 3 and not each["reason"] for each in row["plans"])
    assert plan.processes == 2
    assert plan.measured_step_time == sorted(pipeline["samples"])[1] == row["measured_step_time"]
    fastest = min(each["measured_step_time"] for each in alone)
    assert plan.measured_single_device_step_time == fastest
    assert row["false_win"] == (fastest < plan.measured_step_time)
    assert ("do not split" in found.err) == row["false_win"]
    assert "placeto: measured: a step of the plan takes" in found.err


def test_the_fastest_measured_is_written(placeto, two, monkeypatch):
    run, asked = takes({
        ("1f1b", 2): 3.0, ("gpipe", 2): 5.0, ("1f1b", 4): "no memory", ("gpipe", 4): 2.0,
        ("interleaved", 2): 2.2, ("interleaved", 4): 2.1, (None, 1): 2.5, (None, 2): 4.0,
        (None, 4): 3.5,
    })  # fmt: skip
    monkeypatch.setattr(pipelines, "run_pipelines", run)
    argv = ("place", "m2.json.gz", "m4.json.gz", *MEASURE, "--json", "-o", "p.json")
    found = placeto(*argv)
    assert found.status == 0
    plan, row = load_pipeline("plan.json"), found.document
    assert (plan.schedule, plan.microbatches) == ("gpipe", 4)
    assert (plan.measured_step_time, plan.measured_single_device_step_time) == (2.0, 2.5)
    assert row["false_win"] is False
    assert sorted(asked, key=str) == sorted(
        [(each["schedule"], each["microbatches"]) for each in row["plans"]], key=str
    )
    assert [each["reason"] for each in row["plans"] if each["reason"]] == ["no memory"]
    assert "one process alone takes 2.5 s, 1.25 times as long" in found.err
    # The placement is that of the graph with as many microbatches.
    argv = ("m4.json.gz", "--cluster", "two.yaml", "--placement", "p.json", "--json")
    assert placeto("simulate", *argv).status == 0


def test_one_process_that_is_faster_is_a_false_win(placeto, two, monkeypatch):
    run, _ = takes({("gpipe", 2): 5.0, (None, 1): "no memory", (None, 2): 4.0})
    monkeypatch.setattr(pipelines, "run_pipelines", run)
    argv = ("place", "m2.json.gz", *MEASURE, "--schedule", "gpipe", "--json", "-o", "p.json")
    found = placeto(*argv)
    assert found.status == 0
    assert found.document["false_win"] is True
    assert "do not split: one process alone takes 4 s, 1.25 times as fast" in found.err
    assert load_pipeline("plan.json").measured_single_device_step_time == 4.0


def test_microbatches_are_tried_and_measured(placeto, two, monkeypatch):
    schedules = dict.fromkeys(
        [(name, count) for name in ("1f1b", "gpipe", "interleaved") for count in (2, 4, 8)], 9.0
    )
    alone = {(None, count): 9.0 for count in (1, 2, 4, 8)}
    run, _ = takes(schedules | {("gpipe", 4): 1.0} | alone)
    monkeypatch.setattr(pipelines, "run_pipelines", run)
    argv = ("place", f"{SOURCE}&microbatches=auto", *MEASURE, "--save-graph", "g.json.gz", "--json")
    assert placeto(*argv).status == 0
    assert load_graph("g.json.gz").num_microbatches == load_pipeline("plan.json").microbatches == 4


def test_a_device_that_is_not_here(placeto, two):
    box = load_cluster("two.yaml")
    away = replace(box.devices[1], torch="cuda:7")
    save_cluster(replace(box, devices=(replace(box.devices[0], torch="cuda:6"), away)), "two.yaml")
    found = placeto("place", "m2.json.gz", *MEASURE, "1", "--schedule", "gpipe", "--json")
    assert found.status == 1
    assert found.err.splitlines()[-1].startswith("placeto: none of the plans can be run: tests.")
    row = found.document
    assert row["measured_step_time"] is row["false_win"] is None
    assert all(each["reason"] and not each["samples"] for each in row["plans"])
    assert load_pipeline("plan.json").measured_step_time is None  # the simulated plan is kept


def test_without_runs_the_simulation_chooses_between_graphs(placeto, two):
    found = placeto("place", "m2.json.gz", "m4.json.gz", *MEASURE[:-1], "--json")
    assert found.status == 0
    rows = found.document["plans"]
    assert [row["microbatches"] for row in rows] == [2, 4]
    (kept,) = (row for row in rows if row["kept"])
    assert kept["simulated_step_time"] == min(row["simulated_step_time"] for row in rows)
    assert load_pipeline("plan.json").microbatches == kept["microbatches"]


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("m2.json.gz", *MEASURE, "0"), "--measure 0: expected one number of steps, from 1"),
        (("m2.json.gz", *MEASURE, "1", "2"), "--measure 1 2: expected one number of steps"),
        (("m2.json.gz", "other.json.gz", *MEASURE), "expected the step of one module"),
        (("m2.json.gz", "m2.json.gz", *MEASURE), "deep, deep of 2, 2 microbatches: expected"),
        (("m2.json.gz", "m4.json.gz", "--cluster", "two.yaml"), "place: 2 graphs; give one"),
        (("m2.json.gz", f"{SOURCE}&microbatches=auto", *MEASURE), "none auto"),
        (("m2.json.gz", "--cluster", "one.yaml", *MEASURE[2:]), "there cannot be 2 stages"),
    ],
)
def test_what_is_refused(placeto, two, argv, complaint):
    save_cluster(detect_cluster("one"), "one.yaml")
    other = SOURCE.replace("batch=8", "batch=16")
    save_graph(extract(f"{other}&microbatches=4").graph, "other.json.gz")
    assert complaint in placeto("place", *argv).complaint
    assert not Path("plan.json").exists()
