"""Scotch's mappings counted again, by hand and by Scotch itself, and what it is asked for."""

import re
from dataclasses import replace

import numpy as np
import pytest

from placeto import Channel, Cluster, Device, PlacementProblem, place
from placeto.heuristics.costs import device_speeds
from placeto.heuristics.partition import PartitionGraph, partition_graph
from placeto.heuristics.scotch import IMBALANCE, mapped, scotch_parts
from tests.builders import make_graph
from tests.heuristics.partitions import (
    best_random_cut,
    check_balance,
    cut_weight,
    inception,
    slow_cpu,
    two_cliques,
)


@pytest.mark.parametrize("cluster", ["k80x2", "k80x4", "a100x2-v100x2-cpu"])
def test_cut_and_balance_counted_again(cluster, tmp_path):
    problem = inception(cluster)
    devices = np.arange(problem.num_devices)
    graph, _ = partition_graph(problem, devices)
    parts = mapped(problem, devices, seed=1)
    speeds = device_speeds(problem, devices)
    check_balance(graph, parts, speeds / speeds.sum(), IMBALANCE)
    cut = cut_weight(graph, parts)
    assert cut < best_random_cut(graph, speeds / speeds.sum()) / 3
    # Scotch's own report on the same graph, as `gmap -vm` prints it.
    from pyscotch import Architecture, Graph

    with Graph() as again, Architecture() as complete:
        again.build(graph.start, graph.neighbour, graph.vertex_weight, graph.edge_weight)
        complete.complete(len(devices))
        again.map_view(tmp_path / "report", parts, complete)
    said = re.search(r"CommCutSz=\S+\s+\((\d+)\)", (tmp_path / "report").read_text())
    assert int(said[1]) == cut


def test_the_only_good_cut():
    placement = place(two_cliques(), "scotch")
    assert len(set(placement.devices[:5])) == len(set(placement.devices[5:])) == 1
    assert placement.devices[0] != placement.devices[5]


def test_a_pin_takes_its_clique_with_it():
    for device in (0, 1):
        devices = place(two_cliques(a0=device), "scotch").devices
        assert devices.tolist() == [device] * 5 + [1 - device] * 5


def test_what_is_fixed_stays():
    graph, _ = partition_graph(two_cliques(), np.arange(2))
    fixed = np.array([0, 1, -1, -1, -1, 0, -1, -1, -1, 1])
    machine = PartitionGraph(np.arange(3), np.array([1, 0]), np.ones(2), np.ones(2))
    parts = scotch_parts(graph, machine, fixed, 0)
    assert parts[fixed >= 0].tolist() == fixed[fixed >= 0].tolist()


def test_neighbours_are_on_devices_that_are_near():
    # Four cliques a - b, c - d, with many bytes between a and b and between c and d. Devices 0 and
    # 2 are near each other, and 1 and 3.
    count, names = 6, "abcd"
    near, far = 8.0, 1.0
    tensors = [
        (f"{clique}{low}", 100, [f"{clique}{high}"])
        for clique in names
        for low in range(count)
        for high in range(low + 1, count)
    ]
    for a, b, size in (("a", "b", 40), ("c", "d", 40), ("b", "c", 1)):
        tensors += [(f"{a}{number}", size, [f"{b}{number}"]) for number in range(count)]
    graph = make_graph({f"{c}{n}": 1.0 for c in names for n in range(count)}, tensors)
    devices = [f"d{number}" for number in range(4)]
    channels = tuple(
        Channel(f"{a}{b}", (f"d{a}",), (f"d{b}",), near if a % 2 == b % 2 else far)
        for a in range(4)
        for b in range(4)
        if a != b
    )
    cluster = Cluster("pairs", tuple(Device(name, "k", 10**6) for name in devices), channels)
    placed = place(PlacementProblem(graph, cluster, "none"), "scotch").devices.reshape(4, count)
    assert (placed == placed[:, :1]).all()
    a, b, c, d = placed[:, 0]
    assert a % 2 == b % 2 != c % 2 == d % 2


def test_mincut_leaves_the_cpu_to_what_can_be_nowhere_else():
    problem = slow_cpu()
    seconds = {**problem.graph.op_seconds, "gpu": np.array([1.0] * 88 + [np.inf] * 2)}
    graph = replace(problem.graph, op_seconds=seconds)
    devices = place(PlacementProblem(graph, problem.cluster, "none"), "mincut").devices
    assert np.bincount(devices[:88], minlength=3).tolist() == [44, 44, 0]
    assert devices[88:].tolist() == [2, 2]


def test_a_slow_device_gets_its_share():
    assert np.bincount(place(slow_cpu(), "scotch").devices).tolist() == [40, 40, 10]


def test_what_a_device_cannot_run_moves_to_others():
    # Speeds are alike, for no group runs everywhere: Scotch wants a third of all on the CPU.
    columns = {"gpu": np.array([1.0] * 20 + [np.inf]), "cpu": np.array([np.inf] * 20 + [1.0])}
    names = [f"op{op}" for op in range(21)]
    graph = replace(make_graph(dict.fromkeys(names, 1.0)), op_seconds=columns)
    devices = place(PlacementProblem(graph, slow_cpu().cluster, "none"), "scotch").devices
    assert set(devices[:20].tolist()) == {0, 1}
    assert devices[20] == 2


def test_mincut_is_scotch_on_the_cluster_without_the_cpu():
    with_cpu, without = inception("k80x4-cpu", "auto"), inception("k80x4", "auto")
    assert place(with_cpu, "mincut").devices.tolist() == place(without, "scotch").devices.tolist()
    assert place(without, "mincut").devices.tolist() == place(without, "scotch").devices.tolist()
    assert (place(with_cpu, "scotch").devices == 4).any()


def test_the_same_seed_maps_the_same_again_and_again():
    problem = inception("k80x4", "none")
    first, *rest = (mapped(problem, np.arange(4), seed=7).tolist() for _ in range(4))
    assert all(again == first for again in rest)
    assert mapped(problem, np.arange(4), seed=8).tolist() != first
