"""`placeto place --pipeline`."""

import pytest

from placeto import (
    Channel,
    Cluster,
    Device,
    load_graph,
    load_pipeline,
    save_cluster,
    save_graph,
)
from placeto.extraction import extract

SOURCE = "tests.extraction.pytorch.models:deep"
PLACE = ("--cluster", "k80x2", "--pipeline", "plan.json")


def test_a_source_is_extracted_with_as_many_microbatches_and_planned(placeto):
    files = ("--save-graph", "g.json.gz", "-o", "p.json", "--device-map", "map.json")
    found = placeto("place", SOURCE, *PLACE, "--microbatches", 4, "--json", *files)
    assert found.status == 0
    row, plan = found.document, load_pipeline("plan.json")
    assert load_graph("g.json.gz").num_microbatches == plan.microbatches == 4
    assert (row["method"], row["pipeline_plan"]) == ("pipeline", "plan.json")
    assert tuple(row["split_points"]) == plan.split_points
    assert row["step_time"] == plan.step_time
    assert row["single_device_step_time"] == plan.single_device_step_time
    assert row["schedule"] == plan.schedule
    argv = ("g.json.gz", "--cluster", "k80x2", "--placement", "p.json", "--json")
    simulated = placeto("simulate", *argv).document
    # PyTorch holds more than is read: buffers for what is received, among others.
    more = zip(simulated["peak_memory"], plan.peak_memory, strict=True)
    assert all(peak < held < 1.1 * peak for peak, held in more)


def test_what_is_said_to_a_person(placeto):
    found = placeto("place", f"{SOURCE}?microbatches=2", *PLACE, "--schedule", "gpipe")
    assert found.status == 0
    assert "the pipeline is in plan.json" in found.err
    said = "op times of deep on k80 are estimates; placeto calibrate --torch measures them"
    assert found.err.count(said) == 1
    assert load_pipeline("plan.json").schedule == "gpipe"


def test_the_number_of_microbatches_is_chosen(placeto):
    files = ("--save-graph", "g.json.gz", "-o", "p.json")
    found = placeto("place", f"{SOURCE}?batch=6&microbatches=auto", *PLACE, "--json", *files)
    assert found.status == 0
    rows = found.document["microbatches"]
    assert [row["microbatches"] for row in rows] == [1, 2, 6]
    (chosen,) = (row for row in rows if row["chosen"])
    assert chosen["step_time"] == min(row["step_time"] for row in rows[1:])
    plan = load_pipeline("plan.json")
    assert plan.microbatches == load_graph("g.json.gz").num_microbatches == chosen["microbatches"]
    assert plan.step_time == found.document["step_time"] == chosen["step_time"]
    # Of one microbatch it is the best device's step.
    assert rows[0]["step_time"] == rows[0]["single_device_step_time"]


def test_the_cpu_of_a_cluster_with_gpus_has_no_stage(placeto):
    files = ("--pipeline", "plan.json", "-o", "p.json", "--save-graph", "g.json.gz")
    argv = ("--cluster", "k80x2-cpu", "--microbatches", "4", "--schedule", "interleaved", *files)
    found = placeto("place", SOURCE, *argv)
    assert found.status == 0
    assert "op times of deep on k80 are estimates" in found.err  # not of the CPU
    assert {stage.device for stage in load_pipeline("plan.json").stages} == {"cuda:0", "cuda:1"}
    # The placement is one of the whole cluster.
    argv = ("g.json.gz", "--cluster", "k80x2-cpu", "--placement", "p.json", "--json")
    assert placeto("simulate", *argv).document["peak_memory"][2] == 0


def test_one_microbatch_is_not_for_the_cpu_either(placeto):
    ways = [Channel(f"{a}-{b}", (a,), (b,), 1e9) for a, b in (("cuda:0", "cpu"), ("cpu", "cuda:0"))]
    devices = (Device("cuda:0", "k80", 100), Device("cpu", "cpu", 2**30))
    save_cluster(Cluster("box", devices, tuple(ways)), "box.yaml")
    argv = ("--cluster", "box.yaml", "--pipeline", "plan.json", "--json")
    found = placeto("place", f"{SOURCE}?batch=2&microbatches=auto", *argv)
    assert found.status == 1
    assert not any(row["feasible"] for row in found.document["microbatches"])


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("fork.json", *PLACE), "graph 'by hand': does not say which modules"),
        ((f"{SOURCE}?batch=8", *PLACE), "has one microbatch, of which no pipeline can be made"),
        (("m.json.gz", *PLACE, "--microbatches", "8"), "has 2; extract it with ?microbatches=8"),
        ((f"{SOURCE}?microbatches=2", *PLACE, "--microbatches", "4"), "says how many, too"),
        ((f"{SOURCE}?batch=1&microbatches=auto", *PLACE), "one example makes no pipeline"),
        ((f"{SOURCE}?microbatches=auto", *PLACE, "--microbatches", "4"), "says how many, too"),
        (("m.json.gz", *PLACE, "--method", "auto"), "--method does not go with --pipeline"),
        (("m.json.gz", *PLACE, "--set", "a=1"), "--set does not go with --pipeline"),
        (("m.json.gz", "--cluster", "k80x2", "--schedule", "1f1b"), "--schedule goes with"),
        (("m.json.gz", *PLACE, "-o", "plan.json"), "give every file its own name"),
    ],
)
def test_what_does_not_go_together_is_refused(placeto, argv, complaint):
    save_graph(extract(f"{SOURCE}?microbatches=2").graph, "m.json.gz")
    assert complaint in placeto("place", *argv).complaint
