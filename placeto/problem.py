"""A placement problem: a graph, its grouping and a cluster, as arrays ready to simulate."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.grouping import Grouping, group_ops
from placeto.grouping.contraction import shared_bytes
from placeto.order import Order, held_back, rank_ops
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import ancestors, compressed, directed, topological_order
from placeto.support.errors import PlacetoError

Objective = Literal["step-time", "throughput"]

MAX_GROUPS_IN_PAIRS = 20_000  # a matrix of booleans of 400 MB


class ClusterArrays(NamedTuple):
    """The figures of a cluster's devices and channels."""

    launch_overhead: Floats  # (num_devices,) s
    channel_between: Ints  # (num_devices, num_devices), -1 on the diagonal
    bandwidth: Floats  # (num_channels,) bytes/s
    latency: Floats  # (num_channels,) s
    overhead: Floats  # (num_channels,) s
    multicast: Bools  # (num_channels,)
    path_start: Ints  # (num_channels + 1,) compressed rows of
    path: Ints  # links, of each channel that has a path; empty if a transfer is always one part
    links: Floats  # (num_links, 2) bytes/s, and s of latency
    cost_start: Ints  # (2 num_channels + 1,) compressed rows, for sending and receiving in turn, of
    costs: Floats  # (num_costs, 3) from how many bytes, s, and s a byte


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """What a placer solves: give each group a device so that the step time is short.

    Attributes:
        graph: the ops.
        cluster: the devices.
        grouping: `"auto"`, `"papers"`, `"none"`, the largest number of groups, or a (num_ops,)
            array that gives each op its group, numbered from 0 without gaps; see
            `placeto.grouping.group_ops`.
        pins: group -> device, both by number; obeyed by every placer.
        order: a name, such as `"fifo"` or `"critical-path"`, or (num_ops,) ranks; see
            `placeto.order.rank_ops`.
        objective: what placers make small: `"step-time"`, the seconds of one step, or
            `"throughput"`, the seconds a microbatch of a pipeline that never drains; see
            `placeto.objective`.
        op_group: (num_ops,) group of each op.
        op_seconds: (num_ops, num_devices) seconds of each op on each device; infinite where it
            cannot run.
        alone: (num_devices,) by what op times are to be multiplied where one device has all groups:
            `placeto calibrate` says so in the graph's meta, of a kind whose devices slow each other
            down, as the cores of a CPU do; its op times are those beside busy devices. Else 1.
        allowed: (num_groups, num_devices) which devices a placer may give a group: those that
            can run all of its ops, and of these only the pinned one if there is a pin.
        ranks: (num_ops,) of a device's ready ops, one with a lower rank goes first; None if it is
            always the one that was ready first.
        held_back: (n, 2) ops, of which the second waits for the first, wherever both are; see
            `placeto.order.held_back`.

    Raises:
        PlacetoError: the graph has no costs for a device kind, the grouping parts ops that must
            share a device, a group can run nowhere, a pin cannot be obeyed, or the order or the
            objective is none.
    """

    graph: ComputationGraph
    cluster: Cluster
    grouping: Grouping = "auto"
    pins: Mapping[int, int] = field(default_factory=dict, kw_only=True)
    order: Order = field(default="fifo", kw_only=True)
    objective: Objective = field(default="step-time", kw_only=True)
    op_group: Ints = field(init=False)
    op_seconds: Floats = field(init=False)
    alone: Floats = field(init=False)
    allowed: Bools = field(init=False)
    ranks: Ints | None = field(init=False)
    held_back: Ints = field(init=False)

    def __post_init__(self) -> None:
        if self.objective not in get_args(Objective):
            known = " or ".join(get_args(Objective))
            raise PlacetoError(f"objective is {self.objective!r}, expected {known}")
        put = object.__setattr__
        put(self, "op_seconds", _op_seconds(self.graph, self.cluster))
        put(self, "alone", _alone(self.graph, self.cluster))
        put(self, "op_group", group_ops(self.graph, self.grouping))
        put(self, "allowed", self._allowed())
        put(self, "ranks", rank_ops(self.graph, self.op_seconds, self.order))
        put(self, "held_back", held_back(self.graph, self.op_seconds, self.order))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A pickle forgets it; compiled code would be compiled anew for arrays to write to.
        for array in (self.op_group, self.op_seconds, self.allowed, self.ranks, self.held_back):
            if array is not None:
                array.flags.writeable = False

    def _allowed(self) -> Bools:
        allowed = np.ones((self.num_groups, self.num_devices), dtype=bool)
        ops, devices = np.nonzero(~np.isfinite(self.op_seconds))
        allowed[self.op_group[ops], devices] = False
        for pin in self.pins.items():
            group, device = pin
            if not all(isinstance(number, int | np.integer) for number in pin):
                raise PlacetoError(
                    f"pin {group!r}={device!r}: expected the numbers of a group and a device"
                )
            for what, number, count in zip(("group", "device"), pin, allowed.shape, strict=True):
                if not 0 <= number < count:
                    raise PlacetoError(
                        f"pin {group}={device}: there is no {what} {number}; "
                        f"{what}s go from 0 to {count - 1}"
                    )
            if not allowed[group, device]:
                raise PlacetoError(
                    f"pin {group}={device}: device {self.cluster.devices[device].name!r} cannot "
                    f"run every op of group {group}"
                )
            allowed[group] = False
            allowed[group, device] = True
        stuck = np.flatnonzero(~allowed.any(axis=1))
        if len(stuck):
            first = int(np.argmax(self.op_group == stuck[0]))
            raise PlacetoError(
                f"graph {self.graph.name!r} on {self.cluster.name!r}: no device can run every op "
                f"of group {stuck[0]} (op {self.graph.op_names[first]!r} and others); "
                "add a device kind that can"
            )
        allowed.flags.writeable = False
        return allowed

    @property
    def num_groups(self) -> int:
        """How many groups there are to place."""
        return int(self.op_group.max()) + 1

    @property
    def num_devices(self) -> int:
        """How many devices there are to place them on."""
        return self.cluster.num_devices

    def seconds_of(self, devices: Ints) -> Floats:
        """(num_ops,) seconds of each op where a placement, (num_groups,) devices, has it."""
        seconds = self.op_seconds[np.arange(self.graph.num_ops), devices[self.op_group]]
        return seconds * self.alone[devices[0]] if (devices == devices[0]).all() else seconds

    def with_alone(self, alone: Floats) -> Self:
        """The same problem with other factors; see `alone`."""
        changed = copy(self)
        object.__setattr__(changed, "alone", alone)
        return changed

    @cached_property
    def group_seconds(self) -> Floats:
        """(num_groups, num_devices) sum of the op times of each group on each device."""
        columns = [np.bincount(self.op_group, weights=column) for column in self.op_seconds.T]
        return np.stack(columns, axis=1)

    @cached_property
    def group_parameters(self) -> Ints:
        """(num_groups,) bytes of parameters of each group's ops."""
        parameters = np.zeros(self.num_groups, dtype=np.int64)
        np.add.at(parameters, self.op_group, self.graph.param_bytes)
        return parameters

    @cached_property
    def group_memory(self) -> Ints:
        """(num_groups,) bytes of parameters and of outputs of each group's ops."""
        graph, memory = self.graph, self.group_parameters.copy()
        np.add.at(memory, self.op_group[graph.tensor_producer], graph.tensor_bytes)
        return memory

    @cached_property
    def group_edges(self) -> tuple[Ints, Ints, Ints]:
        """Edges of the group graph: source, target and bytes, three (num_group_edges,) arrays.

        An edge stands for all tensors that ops of the source produce and ops of the target
        consume, each counted once. Sorted by (source, target); no edge leads from a group to
        itself. Where a grouping joins a forward op and its gradient, the group graph has cycles.
        """
        return shared_bytes(self.graph, self.op_group, self.num_groups)

    @cached_property
    def group_order(self) -> Ints:
        """(num_groups,) groups in topological order.

        Where the group graph has cycles (a forward op in one group with its gradient), groups
        are ordered by the first of their ops in the graph's topological order, which is the
        forward pass's order.
        """
        source, target, _ = self.group_edges
        order = topological_order(self.num_groups, source, target)
        if len(order) == self.num_groups:
            return order
        first = np.full(self.num_groups, self.graph.num_ops)
        np.minimum.at(first, self.op_group, np.argsort(self.graph.topological_order))
        return np.argsort(first, kind="stable")

    @cached_property
    def group_position(self) -> Ints:
        """(num_groups,) where each group stands in `group_order`."""
        return np.argsort(self.group_order)

    @cached_property
    def dag_edges(self) -> tuple[Ints, Ints]:
        """Parent and child of each edge of the group graph, two (n,) arrays.

        The edges of `group_edges`, turned to point along `group_order`, each pair once; without
        cycles in the group graph they are the same edges.
        """
        source, target, _ = self.group_edges
        return directed(self.group_position, source, target)

    @cached_property
    def ancestors(self) -> Bools:
        """(num_groups, num_groups) whether the column is an ancestor of the row by `dag_edges`.

        Raises:
            PlacetoError: there are too many groups for a matrix of all pairs.
        """
        if self.num_groups > MAX_GROUPS_IN_PAIRS:
            raise PlacetoError(
                f"graph {self.graph.name!r}: {self.num_groups:,} groups are too many to relate "
                f"each to each, at most {MAX_GROUPS_IN_PAIRS:,} are possible; use a coarser "
                "grouping, such as auto"
            )
        return ancestors(self.group_order, *self.dag_edges)

    @cached_property
    def group_ops(self) -> tuple[Ints, Ints]:
        """Compressed rows of the ops of each group: start (num_groups + 1,), ops (num_ops,)."""
        return compressed(self.num_groups, self.op_group, np.arange(self.graph.num_ops))

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """(num_groups,) a name for each group: that of its longest op, the first of equals."""
        longest = np.where(np.isfinite(self.op_seconds), self.op_seconds, 0).max(axis=1)
        first = np.lexsort((-longest, self.op_group))[self.group_ops[0][:-1]]
        return tuple(self.graph.op_names[op] for op in first.tolist())

    @cached_property
    def arrays(self) -> ClusterArrays:
        """The cluster in arrays."""
        cluster = self.cluster
        held = np.array([d.launch_overhead_seconds for d in cluster.devices], dtype=float)
        figures = [(c.bandwidth, c.latency_seconds, c.overhead_seconds) for c in cluster.channels]
        bandwidth, latency, overhead = np.array(figures, dtype=float).reshape(-1, 3).T.copy()
        multicast = np.array([channel.multicast for channel in cluster.channels], dtype=bool)
        number = {link.name: index for index, link in enumerate(cluster.links)}
        paths = [[number[name] for name in channel.path] for channel in cluster.channels]
        costs = [end for channel in cluster.channels for end in (channel.send, channel.receive)]
        of_links = [(link.bandwidth, link.latency_seconds) for link in cluster.links]
        rows = [(c.from_bytes, c.seconds, c.seconds_per_byte) for end in costs for c in end]
        return ClusterArrays(
            held, cluster.channel_between, bandwidth, latency, overhead, multicast,
            path_start=np.cumsum([0, *map(len, paths)]),
            path=np.array([link for path in paths for link in path], dtype=np.int64),
            links=np.array(of_links, dtype=float).reshape(-1, 2),
            cost_start=np.cumsum([0, *map(len, costs)]),
            costs=np.array(rows, dtype=float).reshape(-1, 3),
        )  # fmt: skip

    @cached_property
    def memory_limit(self) -> Ints:
        """(num_devices,) bytes of memory of each device."""
        return np.array([device.memory_bytes for device in self.cluster.devices], dtype=np.int64)

    def check_devices(self, devices: object, *, many: bool = False) -> Ints:
        """A placement's devices, (num_groups,) numbers, or those of many, as an array of int64.

        Raises:
            PlacetoError: wrong shape, not whole numbers, or a device that is not there.
        """
        what, have, shape = "placement", "has", f"({self.num_groups},): one device a group"
        if many:
            what, have, shape = "placements", "have", f"(batch, {self.num_groups})"
        try:
            array = np.asarray(devices)
        except ValueError as error:
            are = "are" if many else "is"
            raise PlacetoError(f"{what} {are} not an array of device numbers") from error
        if array.ndim != 1 + many or array.shape[-1] != self.num_groups:
            raise PlacetoError(f"{what} {have} shape {array.shape}, expected {shape}")
        if not np.issubdtype(array.dtype, np.integer):
            raise PlacetoError(f"{what} {have} {array.dtype} values, expected device numbers")
        if array.size and not 0 <= array.min() <= array.max() < self.num_devices:
            first = int(np.argmax((array < 0) | (array >= self.num_devices)))
            raise PlacetoError(
                f"placement gives group {first % self.num_groups} device {array.flat[first]}, "
                f"but devices go from 0 to {self.num_devices - 1}"
            )
        return array.astype(np.int64, order="C")


def _alone(graph: ComputationGraph, cluster: Cluster) -> Floats:
    costs = graph.meta.get("costs")
    kinds = costs.get("kinds") if isinstance(costs, Mapping) else None
    known = kinds if isinstance(kinds, Mapping) else {}

    def factor(kind: str) -> float:
        of_kind = known.get(kind)
        found = of_kind.get("alone", 1.0) if isinstance(of_kind, Mapping) else 1.0
        return float(found) if isinstance(found, int | float) and 0 < found < np.inf else 1.0

    return np.array([factor(device.kind) for device in cluster.devices])


def _op_seconds(graph: ComputationGraph, cluster: Cluster) -> Floats:
    for kind in cluster.kinds:
        if kind not in graph.op_seconds:
            raise PlacetoError(
                f"graph {graph.name!r} has no op_seconds for device kind {kind!r} of cluster "
                f"{cluster.name!r}; it has: {', '.join(graph.op_seconds) or 'none'}; add a column "
                "by extracting the graph again, or by calibrating on such a device"
            )
    columns = [graph.op_seconds[device.kind] for device in cluster.devices]
    seconds = np.ascontiguousarray(np.stack(columns, axis=1))
    seconds.flags.writeable = False
    return seconds
