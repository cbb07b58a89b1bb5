"""Placements: groups to devices, as files and as maps that a framework can use."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.grouping import Grouping
from placeto.placement.module_devices import TorchDevice, device_map
from placeto.placement.placed_graph import ORDERED, add_control_edges, check_order, placed_graph_def
from placeto.problem import PlacementProblem
from placeto.simulation import control_edges, simulate
from placeto.simulation.loads import throughputs
from placeto.support.arrays import Ints
from placeto.support.documents import Document, read_document
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

FORMAT: Literal["placeto.placement"] = "placeto.placement"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Placement:
    """A placement, and what is known of it. Equal where devices, method, seed and settings are.

    Attributes:
        problem: what is placed.
        devices: (num_groups,) device of each group.
        step_time: simulated seconds.
        peak_memory: (num_devices,) simulated bytes; where the problem's objective is throughput,
            parameters and the outputs of one microbatch.
        feasible: whether it fits in memory and every op can run where it is.
        method: the placer that found it.
        seed: the seed the placer was given.
        evaluations: placements simulated in finding it.
        wall_seconds: seconds it took to find, by the clock of the budget.
        interrupted: whether Ctrl-C ended the search before its time.
        lower_bound: seconds that the placer has proven no feasible placement to be below, by the
            objective; 0 if it proves nothing, infinite if there is no feasible placement.
        found_by: the part of the placer that found it, of a placer that is made of several; else
            the placer.
        trace: how the search went: of each feasible placement that was the fastest until then,
            placements simulated, seconds since the start, and its seconds by the objective.
        learning: of each update of a placer that trains on the problem: seconds since the start,
            and the mean step time in seconds of its episodes' last placements.
        settings: the settings the placer was given, where they are not its own.
        candidates: (num_groups,) devices of the last few placements in the trace, all different,
            the fastest first: those that it is worth to measure.
    """

    problem: PlacementProblem
    devices: Ints
    step_time: float
    peak_memory: Ints
    feasible: bool
    method: str = "given"
    seed: int = 0
    evaluations: int = 1
    wall_seconds: float = 0.0
    interrupted: bool = False
    lower_bound: float = 0.0
    found_by: str = "given"
    trace: tuple[tuple[int, float, float], ...] = ()
    learning: tuple[tuple[float, float], ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    candidates: tuple[Ints, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        mine, theirs = ((each.method, each.seed, each.settings) for each in (self, other))
        return mine == theirs and np.array_equal(self.devices, other.devices)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def microbatch_seconds(self) -> float:
        """Seconds a microbatch of a pipeline that never drains: of the busiest resource."""
        return float(throughputs(self.problem, self.devices[None]).step_time[0])

    @property
    def seconds(self) -> float:
        """What the problem's objective is: the step time, or the seconds a microbatch."""
        throughput = self.problem.objective == "throughput"
        return self.microbatch_seconds if throughput else self.step_time

    @property
    def batch_seconds(self) -> float:
        """Seconds of all microbatches, by the problem's objective."""
        throughput = self.problem.objective == "throughput"
        return self.seconds * (self.problem.graph.num_microbatches if throughput else 1)

    def device_names(self) -> list[str]:
        """(num_groups,) names of the groups' devices."""
        devices = self.problem.cluster.devices
        return [devices[device].name for device in self.devices]

    def op_devices(self) -> dict[str, str]:
        """Op name -> device name, gradient and optimizer ops included."""
        names = np.array(self.device_names())[self.problem.op_group]
        return dict(zip(self.problem.graph.op_names, names.tolist(), strict=True))

    def apply(self, graph_def: "GraphDef", order: str = ORDERED) -> "GraphDef":
        """A copy of the graph's GraphDef with every op on its TensorFlow device, and in order.

        Gradient and optimizer ops are among those that were placed; a variable's initializer goes
        where the variable is.

        Args:
            graph_def: what was extracted together with the graph.
            order: `fifo` for control dependencies that let each device take its ops in the
                simulated order (see `control_edges`), `none` for the runtime's own.

        Raises:
            PlacetoError: a GraphDef without the graph's ops, a device without a TensorFlow name, or
                an unknown order.
        """
        check_order(order)
        graph = self.problem.graph
        names = np.array([str(device) for device in self.problem.cluster.tensorflow_devices()])
        devices = names[self.devices][self.problem.op_group].tolist()
        try:
            placed = placed_graph_def(graph_def, dict(zip(graph.op_names, devices, strict=True)))
        except PlacetoError as error:
            raise PlacetoError(f"graph {graph.name!r}: {error}") from error
        if order == ORDERED:
            ops = np.array(graph.op_names, dtype=object)
            schedule = simulate(self.problem, self.devices)
            add_control_edges(placed, ops[control_edges(self.problem, schedule)].tolist())
        return placed

    def device_map(self, names: Mapping[str, TorchDevice] | None = None) -> dict[str, TorchDevice]:
        """The device of each PyTorch module, see `placeto.device_map`."""
        return device_map(self.problem, self.devices, names)

    def save(self, path: str | Path) -> None:
        """Writes a placement file (`.json` or `.json.gz`)."""
        order = self.problem.order
        write_json(
            path,
            {
                "format": FORMAT,
                "version": VERSION,
                "graph": self.problem.graph.name,
                "cluster": self.problem.cluster.name,
                "method": self.method,
                "seed": self.seed,
                "settings": dict(self.settings),
                "step_time": self.step_time if np.isfinite(self.step_time) else None,
                "feasible": self.feasible,
                "order": order if isinstance(order, str) else np.asarray(order).tolist(),
                "placement": self.device_names(),
                "op_group": self.problem.op_group.tolist(),
                "op_devices": self.op_devices(),
            },
        )


class PlacementDocument(Document, kw_only=True):
    """A placement file, as far as it is read.

    Attributes:
        graph: the name of the graph that it places.
        cluster: the name of the cluster that it places it on.
        op_group: the group of each op; null for each op by itself.
        order: see `placeto.order.rank_ops`.
        op_devices: op -> device, by name or number.
    """

    format: Literal["placeto.placement"] = FORMAT
    version: int = VERSION
    graph: str | None = None
    cluster: str | None = None
    op_group: list[int] | None = None
    order: str | list[float] = "fifo"
    op_devices: dict[str, str | int]


def read_placement(path: str | Path) -> PlacementDocument:
    """A placement file as it stands.

    Raises:
        PlacetoError: it is none.
    """
    return read_document(Path(path), PlacementDocument, FORMAT, VERSION, str(path))


def load_placement(
    path: str | Path, graph: ComputationGraph, cluster: Cluster
) -> tuple[PlacementProblem, Ints]:
    """Reads a placement file for a graph and a cluster.

    The devices of the ops, by name, are what counts: the file may have been written for another
    grouping of the same ops, or by hand with nothing but `op_devices`.

    Returns:
        The problem with the file's grouping and order, and (num_groups,) devices.

    Raises:
        PlacetoError: not a placement file, or ops or devices that do not match.
    """
    document = read_placement(path)
    op_devices, op_group = document.op_devices, document.op_group
    for name in graph.op_names:
        if name not in op_devices:
            raise PlacetoError(
                f"{path}: op {name!r} of graph {graph.name!r} has no device in op_devices; "
                f"the file places {document.graph!r}"
            )
    if len(op_devices) > graph.num_ops:
        known = set(graph.op_names)
        extra = next(name for name in op_devices if name not in known)
        raise PlacetoError(f"{path}: op_devices has op {extra!r}, graph {graph.name!r} does not")
    try:
        by_name = {name: cluster.device_index(name) for name in dict.fromkeys(op_devices.values())}
    except PlacetoError as error:
        raise PlacetoError(f"{path}: op_devices: {error}") from error
    device = np.array([by_name[op_devices[name]] for name in graph.op_names])
    try:
        grouping: Grouping = "none" if op_group is None else np.array(op_group)
        problem = PlacementProblem(graph, cluster, grouping)
    except ValueError as error:
        raise PlacetoError(f"{path}: op_group: {error}") from error
    try:
        problem = replace(problem, grouping=problem.op_group, order=document.order)
    except ValueError as error:
        raise PlacetoError(f"{path}: {error}") from error
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = device
    if (wrong := devices[problem.op_group] != device).any():
        op = int(np.argmax(wrong))
        raise PlacetoError(
            f"{path}: op_devices parts op {graph.op_names[op]!r} from others of its group "
            f"{problem.op_group[op]}; give op_group so that it does not"
        )
    return problem, devices
