"""The CPU and the disk in device maps: what they hold is computed elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

import placeto
from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, PlacetoError
from placeto.graph import BACKWARD
from placeto.placement.offload import main_device, main_memory, stores, with_stores
from placeto.placers.device_maps import place_modules

GPUS = Device("cuda:0", "fast", 1000), Device("cuda:1", "slow", 1000)
CPU, DISK = Device("cpu", "cpu", 10**6), Device("disk", "disk", 10**6)


def box(*devices: Device) -> Cluster:
    """Every pair has a channel of its own; that from device i to j carries 10 (i + 1) + j bytes."""
    channels = tuple(
        Channel(f"{a.name}-{b.name}", (a.name,), (b.name,), 10 * (i + 1) + j, latency_seconds=0.5)
        for i, a in enumerate(devices)
        for j, b in enumerate(devices)
        if i != j
    )
    return Cluster("box", devices, channels)


# A chain of three modules. The first and the last share a parameter of 60 bytes; the second has two
# ops and reads one of 300 with both.
CHAIN = ComputationGraph(
    name="chain",
    op_names=["shared", "own", "a/op", "b/op", "b/again", "c/op"],
    op_types=["parameter", "parameter", "mm", "mm", "mm", "mm"],
    op_seconds={"fast": np.array([0, 0, 1, 2, 3, 4.0]), "slow": np.array([0, 0, 10, 20, 30, 40.0])},
    tensor_producer=np.array([0, 1, 2, 3, 4]),
    tensor_bytes=np.array([0, 0, 12, 12, 12]),
    edge_tensor=np.array([0, 0, 1, 1, 2, 3, 4]),
    edge_consumer=np.array([2, 5, 3, 4, 3, 4, 5]),
    param_bytes=np.array([60, 300, 0, 0, 0, 0]),
    colocation=np.array([0, 1, 0, 1, 1, 0]),
    meta={
        "pytorch": {
            "modules": ["a", "b", "a", "b", "b", "c"],
            "states": {"shared": ["a.w", "c.w"], "own": ["b.w"]},
        }
    },
)


def step_time(graph: ComputationGraph, cluster: Cluster, device: dict[str, str]) -> float:
    problem = PlacementProblem(graph, cluster, "none")
    names = [each.name for each in cluster.devices]
    devices = np.array([names.index(device.get(op, "cuda:0")) for op in graph.op_names])
    groups = np.zeros(problem.num_groups, np.int64)
    groups[problem.op_group] = devices
    return float(placeto.simulate(problem, groups).step_time)


def test_what_is_stored_is_computed_on_the_first_gpu_once_its_weights_are_there():
    graph, cluster = with_stores(CHAIN, box(*GPUS, CPU), twice=1.0)
    of_cpu = graph.op_seconds["cpu of cuda:0"]
    # 30 bytes a second from the CPU to the first GPU, and half a second each.
    assert of_cpu.tolist() == [0, 0, 1 + 2.5, 2 + 10.5, 3, 4 + 2.5]
    assert step_time(graph, cluster, {}) == 10
    everything = dict.fromkeys(graph.op_names, "cpu")
    assert step_time(graph, cluster, everything) == pytest.approx(10 + 2.5 + 10.5 + 2.5)
    # Tensors on the way to the second module and back are on the GPU already.
    second = dict.fromkeys(["own", "b/op", "b/again"], "cpu")
    assert step_time(graph, cluster, second) == pytest.approx(10 + 10.5)


def test_a_tensor_of_what_is_stored_comes_from_the_main_device():
    given = box(*GPUS, CPU, DISK)
    _, cluster = with_stores(CHAIN, given, twice=1.0)
    between, before = cluster.channel_between, given.channel_between
    for store in (2, 3):
        for one, other, like in ((store, 1, (0, 1)), (1, store, (1, 0))):
            found, wanted = cluster.channels[between[one, other]], given.channels[before[like]]
            assert (found.bandwidth, found.latency_seconds) == (wanted.bandwidth, 0.5)
    assert cluster.channels[between[2, 3]].bandwidth > 1e12
    assert cluster.channels[between[0, 1]] == given.channels[before[0, 1]]


def test_all_that_a_step_makes_is_on_the_main_device_beside_the_largest_module():
    _, cluster = with_stores(CHAIN, box(*GPUS, CPU), twice=1.0)
    # Two tensors of 12 bytes are alive at once.
    assert cluster.devices[0].memory_bytes == 1000 - 24 - 300
    assert cluster.devices[1:2] == GPUS[1:]
    for twice, kept in ((0.5, 12), (0.0, 0)):
        _, cluster = with_stores(CHAIN, box(*GPUS, CPU), twice)
        assert cluster.devices[0].memory_bytes == 1000 - kept - 300
    graph, cluster = with_stores(CHAIN, box(*GPUS, CPU), twice=None)
    assert cluster.devices[0].memory_bytes == 1000
    assert np.isinf(graph.op_seconds["cpu of cuda:0"]).all()


@pytest.mark.parametrize(
    ("at_hand", "memory"),
    [(("a/op", "c/op"), 60 + 24 + 300), (("b/op",), 300 + 24 + 60), ((), 24 + 300)],
)
def test_what_the_main_device_has_at_most(at_hand, memory):
    problem = PlacementProblem(*with_stores(CHAIN, box(*GPUS, CPU), twice=0.0))
    devices = np.full(problem.num_groups, 2)
    devices[[problem.op_group[CHAIN.op_names.index(op)] for op in at_hand]] = 0
    assert main_memory(problem, devices) == memory


def test_a_training_step_stores_nothing():
    phase = np.array([0, 0, 0, 0, 0, BACKWARD])
    graph, _ = with_stores(replace(CHAIN, phase=phase), box(*GPUS, CPU), twice=1.0)
    assert np.isinf(graph.op_seconds["cpu of cuda:0"]).all()


def test_the_cpu_computes_where_there_is_no_gpu():
    assert main_device(box(CPU, DISK)) == 0
    assert stores(box(CPU, DISK)) == (1,)
    assert stores(box(*GPUS, CPU, DISK)) == (2, 3)
    assert with_stores(CHAIN, box(*GPUS), twice=1.0) == (CHAIN, box(*GPUS))
    with pytest.raises(PlacetoError, match="the disk is its only device"):
        main_device(box(DISK))


def test_only_what_fits_nowhere_else_is_stored():
    roomy = place_modules(CHAIN, box(*GPUS, CPU), method="auto", budget_seconds=1)
    assert roomy.step_time == 10
    assert roomy.feasible
    # All of it takes 384 bytes of the GPU. With less, what is made counts twice, beside the larger
    # of the parameters: neither can stay.
    small = replace(GPUS[0], memory_bytes=383)
    stored = place_modules(CHAIN, box(small, CPU), budget_seconds=1)
    assert stored.feasible
    assert stored.device_map() == {"": "cpu"}
    # From the second device of the box to the first it is 20 bytes a second.
    assert stored.step_time == pytest.approx(10 + 3.5 + 15.5 + 3.5)
    roomy = place_modules(CHAIN, box(replace(small, memory_bytes=384), CPU), budget_seconds=1)
    assert roomy.device_map() == {"": "cuda:0"}
