"""What is found of a machine, by what PyTorch and `nvidia-smi` say of it."""

import shutil
from types import SimpleNamespace

import pytest
import torch

from placeto import PlacetoError
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.measurement.pytorch import detect
from placeto.measurement.pytorch.detect import detect_cluster, kind_of, read_topology
from placeto.placement.reserve import Reserve

# As a driver of 2026 prints it, the head underlined; two pairs of GPUs, NVLink within each.
TOPOLOGY = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV12\tPHB\tSYS\tPIX\t0-15\t0\t\tN/A
GPU1\tNV12\t X \tPHB\tSYS\tPIX\t0-15\t0\t\tN/A
GPU2\tPHB\tPHB\t X \tNV4\tPIX\t0-15\t0\t\tN/A
GPU3\tSYS\tSYS\tNV4\t X \tPIX\t0-15\t0\t\tN/A
NIC0\tPIX\tPIX\tPIX\tPIX\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def test_links_of_a_topology():
    assert read_topology(TOPOLOGY, 4) == [
        [0, 12, 0, 0],
        [12, 0, 0, 0],
        [0, 0, 0, 4],
        [0, 0, 4, 0],
    ]
    assert read_topology("", 2) == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 3090", "geforce-rtx-3090"),
        ("NVIDIA GeForce RTX 4090", "geforce-rtx-4090"),
    ],
)
def test_kinds(product, kind):
    assert kind_of(product) == kind
    assert kind in {each.name for each in DEVICE_KINDS}


@pytest.mark.parametrize(
    "product",
    [
        "NVIDIA A10G",
        "NVIDIA L40",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
    ],
)
def test_others_have_other_figures(product):
    assert kind_of(product) not in {each.name for each in DEVICE_KINDS}


def test_a_machine_without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    alone = detect_cluster("box")
    assert [(each.name, each.kind, each.torch) for each in alone.devices] == [("cpu", "cpu", "cpu")]
    assert alone.channels == ()
    assert "no GPU" in alone.source
    two = detect_cluster("box", processes=2)
    assert [each.name for each in two.devices] == ["rank0", "rank1"]
    assert {each.torch for each in two.devices} == {"cpu"}
    assert abs(2 * two.devices[0].memory_bytes - alone.devices[0].memory_bytes) <= 2
    all_of_it = detect_cluster("box", reserve=Reserve()).devices[0].memory_bytes
    assert alone.devices[0].memory_bytes == int(0.95 * all_of_it)
    assert (two.channel_between >= 0).sum() == 2
    with pytest.raises(PlacetoError, match="processes is 0, expected a number from 1"):
        detect_cluster("box", processes=0)


def test_a_disk_holds_weights(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(detect, "READ", 8 << 20)
    cluster = detect_cluster("box", disk=tmp_path)
    assert [(each.name, each.kind) for each in cluster.devices] == [
        ("cpu", "cpu"),
        ("disk", "disk"),
    ]
    free = shutil.disk_usage(tmp_path).free
    assert cluster.devices[1].memory_bytes == pytest.approx(0.95 * free, rel=0.1)
    assert len({each.bandwidth for each in cluster.channels}) == 1
    assert f"Of {tmp_path} 8 MiB that were not cached were read at" in cluster.source
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PlacetoError, match="nowhere: cannot be written and read: No such file"):
        detect_cluster("box", disk=tmp_path / "nowhere")
    with pytest.raises(PlacetoError, match="processes goes without a disk"):
        detect_cluster("box", processes=2, disk=tmp_path)


@pytest.fixture
def gpus(monkeypatch):
    a100 = SimpleNamespace(name="NVIDIA A100-SXM4-80GB", total_memory=80 * 2**30, major=8)
    v100 = SimpleNamespace(name="Tesla V100-PCIE-32GB", total_memory=32 * 2**30, major=7)
    found = [a100, a100, v100, v100]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(found))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: found[number])
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda a, b: {a, b} != {0, 3})
    said = {"topo": TOPOLOGY, "--query-gpu=pcie.link.gen.max,pcie.link.width.max": "4, 16\n" * 4}
    monkeypatch.setattr(detect, "_nvidia_smi", lambda *arguments: said[arguments[0]])


def test_unequal_gpus(gpus):
    cluster = detect_cluster("box")
    assert [each.kind for each in cluster.devices] == ["a100", "a100", "v100", "v100", "cpu"]
    # cuBLAS has 8,519,680 bytes in each of two threads.
    assert cluster.devices[2].memory_bytes == int(0.95 * (32 * 2**30 - 2 * 8_519_680))
    bandwidth = {each.name: each.bandwidth for each in cluster.channels}
    # By hand: 12 and 4 links of 25 GB/s; 16 lanes of 1.969 GB/s; of all of it four fifths.
    assert bandwidth["cuda:0-to-cuda:1"] == pytest.approx(0.8 * 12 * 25e9)
    assert bandwidth["cuda:3-to-cuda:2"] == pytest.approx(0.8 * 4 * 25e9)
    bus = 0.8 * 16 * 1.969e9
    assert bandwidth["cuda:1-to-cuda:2"] == pytest.approx(bus)
    assert bandwidth["cuda:0-to-cuda:3"] == pytest.approx(bus / 2)
    assert bandwidth["cpu-to-cuda:3"] == pytest.approx(bus)
    assert "2 x NVIDIA A100-SXM4-80GB and 2 x Tesla V100-PCIE-32GB" in cluster.source
    with pytest.raises(PlacetoError, match="goes with a machine without a GPU"):
        detect_cluster("box", processes=2)


def test_scratch_of_newer_gpus():
    assert [detect.workspace_bytes(major) >> 20 for major in (8, 9, 10, 12)] == [16, 64, 64, 64]


def test_gpus_without_the_cpu(gpus, monkeypatch, tmp_path):
    box, alone = detect_cluster("box"), detect_cluster("box", cpu=False)
    assert alone.devices == box.devices[:4]
    assert alone.channels == tuple(each for each in box.channels if "cpu" not in each.name)
    monkeypatch.setattr(detect, "READ", 1 << 20)
    with_disk = detect_cluster("box", disk=tmp_path, cpu=False)
    assert [each.kind for each in with_disk.devices[3:]] == ["v100", "disk"]


def test_without_the_cpu_there_has_to_be_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for disk in (None, tmp_path):
        with pytest.raises(PlacetoError, match="no device: PyTorch finds no GPU here"):
            detect_cluster("box", disk=disk, cpu=False)


def test_nothing_of_nvidia_is_installed(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert detect._nvidia_smi("topo", "-m") == ""
    assert detect._pcie_bandwidth() == pytest.approx(16 * 0.985e9)
