import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from placeto import Cluster, ComputationGraph, PlacementProblem, load_cluster, load_graph
from placeto.extraction import extract
from placeto.measurement import Runnable, Runtime, find_runnable

STEPS = "tests.measurement.steps"


@dataclass(frozen=True)
class Saved:
    """An extracted step in its files."""

    path: Path

    @property
    def graph(self) -> ComputationGraph:
        return load_graph(self.path)

    @property
    def runnable(self) -> Runnable:
        return find_runnable(self.graph)


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Extracts a step of `tests.measurement.steps`, once each."""
    folder = tmp_path_factory.mktemp("graphs")
    known = {}

    def extracted(step: str) -> Saved:
        if step not in known:
            path = folder / f"{len(known)}.json.gz"
            extract(f"{STEPS}:{step}").save(path)
            known[step] = Saved(path)
        return known[step]

    return extracted


def fitted(cluster: Cluster) -> Cluster:
    """The cluster with its processes unpinned where the machine has too few cores."""
    if len(os.sched_getaffinity(0)) >= 2:
        return cluster
    return replace(cluster, devices=tuple(replace(d, cores=None) for d in cluster.devices))


@pytest.fixture(scope="session")
def pair() -> Cluster:
    """Two workers."""
    return fitted(load_cluster("local-2"))


@pytest.fixture(scope="session")
def runtime(pair: Cluster) -> Iterator[Runtime]:
    """Those two, started once: that takes seconds. Tests may bring them down."""
    with Runtime(pair) as started:
        yield started


def split(graph: ComputationGraph, cluster: Cluster) -> tuple[PlacementProblem, np.ndarray]:
    """The ops of the second layer on the second device, and what shares a group with them."""
    problem = PlacementProblem(graph, cluster, "papers")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    for group, name in zip(problem.op_group, graph.op_names, strict=True):
        if name.startswith("second") or name == "MatMul_1":
            devices[group] = 1
    return problem, devices
