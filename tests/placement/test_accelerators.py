"""Clusters without the CPU beside GPUs."""

from itertools import permutations

import pytest

from placeto import Channel, Cluster, Device, load_cluster
from placeto.cluster import Link
from placeto.placement.accelerators import accelerators
from placeto.support.launch import Launch


def cluster(*devices):
    names = [device.name for device in devices]
    ways = (Channel(f"{a}-{b}", (a,), (b,), 1e9) for a, b in permutations(names, 2))
    return Cluster("box", devices, tuple(ways))


GPU, OTHER = Device("cuda:0", "a100", 2**30), Device("cuda:1", "v100", 2**29)
CPU, DISK = Device("cpu", "cpu", 2**35), Device("disk", "disk", 2**40)
RANKS = tuple(Device(f"rank{number}", "cpu", 2**30, torch="cpu") for number in range(2))


@pytest.mark.parametrize(
    ("devices", "kept"),
    [
        ((GPU, OTHER, CPU), (GPU, OTHER)),
        ((CPU, GPU, DISK), (GPU,)),
        ((CPU, DISK), (CPU,)),
        (RANKS, RANKS),
        ((*RANKS, DISK), RANKS),
        ((DISK,), (DISK,)),
        ((GPU, Device("host", "cpu", 1)), (GPU,)),
        # As calibration calls kinds, and as other clusters call the CPU.
        ((GPU, Device("cpu", "box-cpu", 1)), (GPU,)),
        ((GPU, Device("host", "box-cpu", 1, torch="cpu")), (GPU,)),
        ((GPU, Device("host", "xeon", 1, tensorflow="/device:CPU:0")), (GPU,)),
        ((GPU, Device("npu", "xeon", 1)), (GPU, Device("npu", "xeon", 1))),
    ],
)
def test_the_cpu_is_left_out_beside_others(devices, kept):
    found = accelerators(cluster(*devices))
    assert found.devices == kept
    assert found == cluster(*kept)


def test_channels_of_several_devices_and_links():
    names = ("cuda:0", "cuda:1", "cpu")
    bus = Channel("bus", names, names, path=("pcie",))
    box = Cluster("box", (GPU, OTHER, CPU), (bus,), links=(Link("pcie", 1e10, 1e-6),))
    (channel,) = accelerators(box).channels
    assert channel.sources == channel.destinations == ("cuda:0", "cuda:1")
    assert (channel.path, channel.bandwidth) == (("pcie",), 1e10)


def test_a_cluster_that_tensorflow_runs_too():
    devices = [
        Device(f"worker{task}", kind, 1, tensorflow=f"/job:worker/task:{task}/device:{type}:0")
        for task, (kind, type) in enumerate((("cpu", "CPU"), ("k80", "GPU")))
    ]
    two = cluster(*devices)
    found = accelerators(Cluster("box", two.devices, two.channels, launch=Launch()))
    assert found.devices == (devices[1],)
    preset = load_cluster("k80x2-cpu")
    assert [each.kind for each in accelerators(preset).devices] == ["k80", "k80"]
    workers = load_cluster("local-2")
    assert accelerators(workers) is workers
