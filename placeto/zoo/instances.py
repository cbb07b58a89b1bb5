"""Placement problems with names, and the best that is known of each.

As CVRPLIB (Uchoa et al. 2017) is for vehicle routing: anybody's placement can be set beside the
best one known, and beside a bound that is proven.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from placeto.cluster import Cluster, load_cluster
from placeto.graph import ComputationGraph, load_graph
from placeto.grouping import Grouping, group_ops
from placeto.order import Order
from placeto.placement import load_placement
from placeto.placement.placement import read_placement
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.arrays import Ints
from placeto.support.bundle import DATA, FOLDERS
from placeto.support.documents import Document, read_document
from placeto.support.errors import PlacetoError
from placeto.zoo.families import parse_member
from placeto.zoo.folders import is_reference, synthetic_member

PATH = DATA / "instances.json.gz"
FORMAT: Literal["placeto.instances"] = "placeto.instances"
VERSION = 1
EQUAL = 1e-9  # relative


class Best(Document, frozen=True):
    """The best placement of an instance that is known.

    Attributes:
        step_time: simulated seconds.
        found_by: who, or which method.
        op_devices: (num_ops,) a digit an op.
        order: which of a device's ready ops goes first; see `placeto.order.rank_ops`.
    """

    step_time: float
    found_by: str
    op_devices: str
    order: str | list[float] = "fifo"


class Instance(Document, frozen=True):
    """A problem with a name.

    A placement gives every op a device. Ops that share a device by the graph's `colocation` must;
    `papers` keeps together what ColocRL's rules do (Mirhoseini et al. 2017), too. A step of one
    microbatch is simulated first come, first served; else the order is part of the placement.

    Attributes:
        source: a bundled graph, or a made-up member of a family.
        cluster: a preset.
        grouping: what stays together.
        lower_bound: seconds that no placement is below, in any order that it may have.
        best: of those that fit in memory.
    """

    source: str
    cluster: str
    grouping: Literal["none", "papers"]
    lower_bound: float
    best: Best

    @property
    def graph(self) -> str:
        """The graph's name."""
        return parse_member(self.source).name if is_reference(self.source) else self.source

    @property
    def name(self) -> str:
        """Graph and cluster, and whether the papers' groups stay together."""
        papers = "-papers" if self.grouping == "papers" else ""
        return f"{self.graph}-{self.cluster}{papers}"

    @property
    def gap(self) -> float:
        """How far the best placement known is above the bound, as a share of the bound."""
        return max(self.best.step_time / self.lower_bound - 1, 0.0)

    def load(self) -> tuple[ComputationGraph, Cluster]:
        """The graph and the cluster, as they ship."""
        cluster = load_cluster(FOLDERS["clusters"] / f"{self.cluster}.yaml")
        if is_reference(self.source):
            return synthetic_member(parse_member(self.source)), cluster
        return load_graph(FOLDERS["graphs"] / f"{self.source}.json.gz"), cluster

    def problem(self, grouping: Grouping | None = None, order: Order = "fifo") -> PlacementProblem:
        """The problem, by default with the instance's own grouping; finer ones are none of it."""
        chosen = self.grouping if grouping is None else grouping
        return PlacementProblem(*self.load(), chosen, order=order)

    def best_placement(self) -> tuple[PlacementProblem, Ints]:
        """The problem in the order of the best placement known, and its (num_groups,) devices."""
        problem = self.problem(order=self.best.order)
        devices = np.zeros(problem.num_groups, dtype=np.int64)
        devices[problem.op_group] = [int(digit) for digit in self.best.op_devices]
        return problem, devices


class InstancesDocument(Document):
    """The file of all instances."""

    format: Literal["placeto.instances"] = FORMAT
    version: int = VERSION
    instances: tuple[Instance, ...] = ()


@cache
def instances() -> dict[str, Instance]:
    """All instances, by name."""
    document = read_document(PATH, InstancesDocument, FORMAT, VERSION, str(PATH))
    return {instance.name: instance for instance in document.instances}


def load_instance(name: str) -> Instance:
    """An instance.

    Raises:
        PlacetoError: there is none of that name.
    """
    if name not in instances():
        raise PlacetoError(f"there is no instance {name!r}; `placeto list` has them")
    return instances()[name]


@dataclass(frozen=True)
class Standing:
    """How a placement stands beside the best known of an instance.

    Attributes:
        instance: which.
        problem: that of the placement, with its groups and its order.
        devices: (num_groups,) the placement.
        step_time: simulated seconds.
        feasible: whether it fits in memory.
    """

    instance: Instance
    problem: PlacementProblem
    devices: Ints
    step_time: float
    feasible: bool

    @property
    def gap(self) -> float:
        """How far it is above the best known, as a share of that; below 0 if it is better."""
        return self.step_time / self.instance.best.step_time - 1

    @property
    def verdict(self) -> str:
        """In a word or two, beside the best known."""
        if not self.feasible:
            return "does not fit"
        if self.gap < -EQUAL:
            return "better"
        if self.gap > EQUAL:
            return f"{self.gap:.2%} worse"
        return "optimal" if self.instance.gap <= EQUAL else "as good"


def standings(path: str | Path, name: str | None = None) -> list[Standing]:
    """How the placement of a file stands.

    Args:
        path: a placement file.
        name: of which instance it is; by default of all that have the graph and the cluster which
            the file names, and whose groups it keeps together.

    Raises:
        PlacetoError: no placement file, no such instance, or none whose rules it keeps to.
    """
    if name is not None:
        chosen = [load_instance(name)]
    else:
        document = read_placement(path)
        named = document.graph, document.cluster
        chosen = [each for each in instances().values() if (each.graph, each.cluster) == named]
        if not chosen:
            raise PlacetoError(
                f"{path}: places {named[0]!r} on {named[1]!r}, which no instance does; `placeto "
                "list` has them, --instance says which one it is"
            )
    graph, cluster = chosen[0].load()
    problem, devices = load_placement(path, graph, cluster)
    if problem.ranks is not None and graph.num_microbatches == 1:
        raise PlacetoError(
            f"{path}: its order is its own, but steps of one microbatch are simulated in fifo"
        )
    schedule = simulate(problem, devices)
    found = [
        Standing(instance, problem, devices, schedule.step_time, schedule.feasible)
        for instance in chosen
        if instance.grouping == "none" or _keeps_papers_groups(problem, devices)
    ]
    if not found:
        raise PlacetoError(
            f"{path}: parts ops that {chosen[0].name} keeps together; such placements are made by "
            "`placeto place --grouping papers`"
        )
    return found


def _keeps_papers_groups(problem: PlacementProblem, devices: Ints) -> bool:
    group, device = group_ops(problem.graph, "papers"), devices[problem.op_group]
    first = np.zeros(group.max() + 1, dtype=np.int64)
    first[group] = device
    return bool((first[group] == device).all())
