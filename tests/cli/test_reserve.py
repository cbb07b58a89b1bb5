"""`--reserve` of `place`, `fit`, `compare` and `detect`."""

from dataclasses import replace

import pytest

from placeto import Cluster, Device, load_cluster, load_pipeline, save_cluster, save_graph
from placeto.extraction import extract

MODELS = "tests.extraction.pytorch.models"


@pytest.fixture
def graph(folder):
    """`m.json.gz`, a step in two microbatches."""
    save_graph(extract(f"{MODELS}:deep?microbatches=2").graph, "m.json.gz")


def test_a_plan_that_fits_exactly_does_not_with_a_byte_in_reserve(placeto, graph):
    argv = ("place", "m.json.gz", "--schedule", "1f1b", "--pipeline", "plan.json", "--json")
    assert placeto(*argv, "--cluster", "k80x2").status == 0
    full, box = load_pipeline("plan.json").peak_memory, load_cluster("k80x2")
    devices = tuple(replace(each, memory_bytes=max(full)) for each in box.devices)
    save_cluster(replace(box, devices=devices), "tight.yaml")
    assert placeto(*argv, "--cluster", "tight.yaml").status == 0
    assert load_pipeline("plan.json").peak_memory == full
    found = placeto(*argv, "--cluster", "tight.yaml", "--reserve", "1B")
    assert found.status == 1
    assert found.document["memory_limit"] == [max(full) - 1] * 2
    assert not load_pipeline("plan.json").feasible


def test_strategies_and_batches_leave_it_free(placeto, graph):
    save_cluster(Cluster("one", (Device("cuda:0", "k80", 2**40),)), "one.yaml")
    compare = ("compare", "m.json.gz", "--cluster", "one.yaml", "--strategies", "single", "--json")
    (row,) = placeto(*compare).document["rows"]
    save_cluster(Cluster("one", (Device("cuda:0", "k80", *row["peak_memory"]),)), "one.yaml")
    for reserve, feasible in (("0%", True), ("1B", False)):
        (row,) = placeto(*compare, "--reserve", reserve).document["rows"]
        assert row["feasible"] is feasible
    fit = ("fit", f"{MODELS}:deep?batch=64", "--cluster", "one.yaml", "--microbatches", 2, "--json")
    assert placeto(*fit).document["fits"]
    found = placeto(*fit, "--reserve", "1B").document
    assert not found["fits"]
    assert found["largest"] < 64


@pytest.mark.parametrize(
    ("text", "left"),
    [("25%", 768), ("0.25", 768), ("24B", 1000), ("0.5KiB", 512), ("0", 1024)],
)
def test_shares_and_bytes(placeto, graph, text, left):
    save_cluster(Cluster("one", (Device("cuda:0", "k80", 1024),)), "one.yaml")
    argv = ("compare", "m.json.gz", "--cluster", "one.yaml", "--strategies", "single", "--json")
    (row,) = placeto(*argv, "--reserve", text).document["rows"]
    assert row["memory_limit"] == [left]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1.5", "reserve is 1.5, expected a share from 0, below 1"),
        ("100%", "reserve is 100%, expected a share from 0, below 1"),
        ("-5%", "expected a share from 0, below 1"),
        ("5GHz", "reserve is '5GHz', expected bytes"),
        ("1KiB", "reserve is 1KiB, and device 'cuda:0' of cluster 'one' has 1 KiB; leave some"),
    ],
)
def test_what_is_refused(placeto, graph, text, complaint):
    save_cluster(Cluster("one", (Device("cuda:0", "k80", 1024),)), "one.yaml")
    argv = ("compare", "m.json.gz", "--cluster", "one.yaml", "--strategies", "single")
    assert complaint in placeto(*argv, f"--reserve={text}").complaint


def test_detect_takes_the_same(placeto, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("placeto.measurement.pytorch.detect._host_memory", lambda: 2**31)
    assert placeto("detect", "-o", "a.yaml", "--reserve", "1GiB").status == 0
    (device,) = load_cluster("a.yaml").devices
    assert device.memory_bytes == 2**30
    assert "1 GiB of each memory are left free" in load_cluster("a.yaml").source
    assert placeto("detect", "-o", "a.yaml").status == 0
    assert load_cluster("a.yaml").devices[0].memory_bytes == int(0.95 * 2**31)
    assert "5% of each memory are left free" in load_cluster("a.yaml").source
    assert "below 1" in placeto("detect", "-o", "a.yaml", "--reserve", "1.5").complaint
