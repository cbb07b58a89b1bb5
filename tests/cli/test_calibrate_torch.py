"""`placeto calibrate --torch` and `placeto detect`."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from placeto import load_cluster, load_graph, load_pipeline, save_cluster
from placeto.extraction.pytorch.ops import FORWARD
from placeto.measurement.pytorch import op_times, transfers
from placeto.measurement.pytorch.detect import detect_cluster

SOURCE = "tests.extraction.pytorch.models:deep?batch=256&microbatches=4&loss=mse"


@pytest.fixture
def two(folder, monkeypatch):
    """A cluster file of two CPU processes; few and small transfers."""
    monkeypatch.setattr(transfers, "SIZES", (4, 2**16, 2**22))
    monkeypatch.setattr(transfers, "TURNS", 3)
    monkeypatch.setattr(op_times, "PASSES", 3)
    save_cluster(detect_cluster("two", processes=2), "two.yaml")


def a_second_each(traced, device, threads, others):
    assert (device, threads, others) == ("cpu", 2, 1)
    seconds = np.ones(len(traced[0].listed.ops))
    return [op_times.OpTimes(seconds, seconds > 0, 0 * seconds, 0.0, np.ones((1, 2)), 1.0, 0.5)]


def half_a_second_each(traced, device, threads, others):
    assert (device, threads, others) == ("cpu", 1, 0)
    seconds = np.array([0.5 * (op.phase == FORWARD) for op in traced[0].listed.ops])
    return [op_times.OpTimes(seconds, seconds > 0, 0 * seconds, 0.0, np.ones((1, 1)), 0.5, 1.0)]


def test_a_module_is_measured_and_planned(placeto, two, monkeypatch):
    argv = ("calibrate", "--torch", SOURCE, "--cluster", "two.yaml", "-o", "out", "--json")
    found = placeto(*argv)
    assert found.status == 0
    assert found.document["files"] == ["out/two-calibrated.yaml", "out/deep.json.gz"]
    cluster, graph = load_cluster("out/two-calibrated.yaml"), load_graph("out/deep.json.gz")
    assert cluster.kinds == ("two-cpu",)
    assert all(each.send and each.receive for each in cluster.channels)
    assert "placeto calibrate --torch" in cluster.source
    (check,) = found.document["checks"]
    assert check["not_measured"] == {}
    # What was measured op by op is about what PyTorch's own step takes.
    assert 0.3 < check["predicted"] / check["measured"] < 3
    column = graph.op_seconds["two-cpu"]
    adds = [n for n, name in enumerate(graph.op_names) if "/accumulate/" in name]
    assert (column[adds] > 0).all()
    assert check["alone"] * column.sum() == pytest.approx(check["predicted"], rel=1e-6)
    assert graph.meta["costs"]["kinds"]["two-cpu"]["alone"] == check["alone"]
    placed = ("out/deep.json.gz", "--cluster", "out/two-calibrated.yaml")
    planned = placeto("place", *placed, "--pipeline", "plan.json")
    assert planned.status == 0
    compared = placeto("compare", *placed, "--strategies", "all")
    assert "are estimates" not in planned.err + compared.err
    assert load_pipeline("plan.json").microbatches == 4
    # Once more, with the channels as they are, and a table for a person; libraries keep memory.
    monkeypatch.setattr("placeto.measurement.pytorch.calibrate.free_bytes", lambda device: 2**30)
    monkeypatch.setattr("placeto.measurement.pytorch.calibrate.time_ops", a_second_each)
    argv = ("calibrate", "--torch", SOURCE, "--cluster", "out/two-calibrated.yaml", "-o", "again")
    found = placeto(*argv, "--keep-channels", "--threads", "2")
    assert found.status == 0
    assert "ops not measured" in found.out
    again = load_cluster("again/two-calibrated.yaml")
    assert again.channels == cluster.channels
    assert again.kinds == ("two-cpu",)
    assert [each.memory_bytes for each in again.devices] == [2**30] * 2
    assert cluster.devices[0].memory_bytes == load_cluster("two.yaml").devices[0].memory_bytes


def test_microbatches_are_measured_in_turn(placeto, two):
    sources = [SOURCE.replace("microbatches=4", f"microbatches={count}") for count in (2, 4)]
    argv = [part for source in sources for part in ("--torch", source)]
    found = placeto("calibrate", *argv, "--cluster", "two.yaml", "-o", "out", "--json")
    assert found.status == 0
    files = ["out/two-calibrated.yaml", "out/deep-2.json.gz", "out/deep-4.json.gz"]
    assert found.document["files"] == files
    assert found.document["graphs"] == ["deep", "deep"]
    for file, check, count in zip(files[1:], found.document["checks"], (2, 4), strict=True):
        assert load_graph(file).num_microbatches == check["microbatches"] == count
        assert (load_graph(file).op_seconds["two-cpu"] > 0).any()
        assert 0.3 < check["predicted"] / check["measured"] < 3


def test_a_disk_is_kept_and_holds_what_does_not_fit(placeto, two, monkeypatch):
    monkeypatch.setattr("placeto.measurement.pytorch.calibrate.time_ops", half_a_second_each)
    monkeypatch.setattr("placeto.measurement.pytorch.detect.READ", 1 << 20)
    assert placeto("detect", "--disk", ".", "-o", "box.yaml").status == 0
    source = "tests.extraction.pytorch.models:deep?batch=4&inference=true"
    argv = ("calibrate", "--torch", source, "--cluster", "box.yaml", "-o", "out")
    assert placeto(*argv).status == 0
    box = load_cluster("out/my-box-calibrated.yaml")
    assert box.kinds == ("my-box-cpu", "disk")
    assert box.channels == load_cluster("box.yaml").channels
    weights = int(load_graph("out/deep.json.gz").param_bytes.sum())
    small = replace(box.devices[0], memory_bytes=int(0.7 * weights))
    save_cluster(replace(box, devices=(small, box.devices[1])), "small.yaml")
    place = ("place", "out/deep.json.gz", "--device-map", "map.json", "--budget", "1", "--json")
    everything = placeto(*place, "--cluster", "out/my-box-calibrated.yaml").document
    assert json.loads(Path("map.json").read_text()) == {"": "cpu"}
    found = placeto(*place, "--cluster", "small.yaml").document
    assert set(json.loads(Path("map.json").read_text()).values()) == {"cpu", "disk"}
    assert found["feasible"]
    refused = placeto(*place, "--cluster", "small.yaml", "-o", "placement.json")
    assert (
        "in a device map disk of cluster 'my-box-calibrated' compute nothing" in refused.complaint
    )
    assert not Path("placement.json").exists()
    assert found["infeasibility"] is None  # which it is without the disk
    assert found["step_time"] > everything["step_time"]


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("--torch", "keras:VGG16"), "is no function of a module that imports torch"),
        (("--torch", SOURCE, "--graph", "nmt"), "--torch goes without --graph"),
        (("--torch", SOURCE, "--torch", SOURCE), "another graph would be in deep-4.json.gz, too"),
        (("--torch", SOURCE, "--threads", "0"), "threads is 0, expected a number from 1"),
        (("--torch", SOURCE, "--device", "cuda:7"), "there is no device 'cuda:7'; devices: cpu"),
        (("--torch", SOURCE, "--cluster", "duo.yaml"), "'d0' has no name in PyTorch"),
        (("--torch", SOURCE, "--cluster", "k80x2"), "device cuda:0 is not here"),
        (("--graph", "nmt"), "no cluster; name one, such as --cluster local-2"),
        (("--graph", "nmt", "--threads", "2"), "--threads goes with --torch"),
    ],
)
def test_what_is_refused(placeto, two, argv, complaint):
    assert complaint in placeto("calibrate", *argv, "-o", "out").complaint


def test_a_machine_is_found(placeto):
    found = placeto("detect", "-o", "my-box.yaml", "--name", "mine", "--processes", 2, "--json")
    assert found.status == 0
    cluster = load_cluster("my-box.yaml")
    assert cluster.name == found.document["cluster"] == "mine"
    assert len(found.document["devices"]) == cluster.num_devices == 2
    found = placeto("detect", "-o", "my-box.yaml")
    assert found.status == 0
    assert "memory" in found.out
    assert "the cluster is in my-box.yaml" in found.err
    assert "name ends in .yaml" in placeto("detect", "-o", "box.json").complaint


def test_without_the_cpu_there_has_to_be_a_gpu(placeto, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    refused = placeto("detect", "--without-cpu", "-o", "box.yaml")
    assert "no device: PyTorch finds no GPU here" in refused.complaint
    assert not Path("box.yaml").exists()


def test_gpus_without_the_cpu(placeto, monkeypatch):
    assert placeto("extract", SOURCE, "-o", "g.json.gz").status == 0
    gpu = SimpleNamespace(name="NVIDIA GeForce RTX 4090", total_memory=24 * 2**30, major=8)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda number: gpu)
    monkeypatch.setattr("torch.cuda.can_device_access_peer", lambda a, b: False)
    assert placeto("detect", "-o", "box.yaml").status == 0
    assert [each.name for each in load_cluster("box.yaml").devices] == ["cuda:0", "cuda:1", "cpu"]
    assert placeto("detect", "--without-cpu", "-o", "box.yaml").status == 0
    assert [each.name for each in load_cluster("box.yaml").devices] == ["cuda:0", "cuda:1"]
    # Before anything is measured.
    place = ("place", "g.json.gz", "--cluster", "box.yaml", "--pipeline", "plan.json")
    assert placeto(*place).status == 0
