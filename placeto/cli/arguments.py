"""Arguments that several commands share, and the problem that they describe."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from placeto.cluster import Cluster, load_cluster
from placeto.graph import ComputationGraph
from placeto.grouping import Grouping
from placeto.order import NamedOrder
from placeto.placers.ordering import ordered
from placeto.placers.registry import find_config, find_placer
from placeto.problem import Objective, PlacementProblem
from placeto.support.errors import PlacetoError
from placeto.zoo.folders import load_graphs

GRAPH_HELP = "A bundled graph (see `placeto list`) or a graph file."
GROUPING_HELP = "Which ops are placed together: auto, papers, none, or at most N groups."
RAY_HELP = "A Ray cluster to take the workers from: its address, or auto."
RESERVE_HELP = "What is left free of each device's memory, as allocators have gaps."
CLUSTER_HELP = "A preset (see `placeto list`) or a cluster file"

Json = Annotated[bool, arg(help="Print one JSON document instead of text.")]
TablesJson = Annotated[bool, arg(help="Print one JSON document instead of tables.")]
Graph = Positional[Annotated[str, arg(help=GRAPH_HELP)]]
PlacementFile = Annotated[str, arg(help="A placement file, as `placeto place -o` writes it.")]
Order = Literal["fifo", "none"]
AnyOrder = Literal[NamedOrder, "none"]
File = Annotated[str | None, arg(metavar="FILE")]
Timeline = Annotated[File, arg(help="Timeline to write, for ui.perfetto.dev.")]
OutputFile = Annotated[File, arg(aliases=["-o"])]
RowsFile = Annotated[OutputFile, arg(help="File to write the JSON document to as well.")]
GroupingText = Annotated[str, arg(metavar="auto|papers|none|N", help=GROUPING_HELP)]
ClusterName = Annotated[str, arg(metavar="PRESET|FILE", help=f"{CLUSTER_HELP}.")]
RealCluster = Annotated[ClusterName, arg(help=f"{CLUSTER_HELP}, whose devices are there.")]
Reserved = Annotated[str, arg(metavar="5%|0.05|1GiB", help=RESERVE_HELP)]
Methods = Annotated[str | None, arg(metavar="A,B,…")]
Workers = Annotated[int | None, arg(metavar="N")]
RayAddress = Annotated[str | None, arg(metavar="auto|HOST:PORT", help=RAY_HELP)]
Settings = UseAppendAction[Annotated[tuple[str, ...], arg(name="set", metavar="NAME=VALUE")]]
Pins = UseAppendAction[Annotated[tuple[str, ...], arg(metavar="GROUP=DEVICE")]]


@dataclass(frozen=True, kw_only=True)
class ProblemArguments:
    """What describes a problem, but for its graph.

    Attributes:
        pin: Keep a group, given by its number or by one of its ops, on a device.
        order: Which of a device's ready ops goes first: the one that was ready first (fifo), all
            microbatches forward, then all backward (gpipe), backward before forward with no more
            microbatches on their way than there are devices (1f1b) or with any number (eager-1f1b),
            or what the longest path leads from (critical-path). By default fifo for a step of one
            microbatch, else what suits best. What is run keeps the order, but for none: that is
            the runtime's own, simulated as fifo.
        objective: What is made small: the seconds of a step, or (throughput) the seconds a
            microbatch of a pipeline that never drains, which the busiest device or channel takes.
    """

    cluster: ClusterName
    grouping: GroupingText = "auto"
    pin: Pins = ()
    order: AnyOrder | None = None
    objective: Objective = "step-time"

    def problem(self, graph: ComputationGraph, cluster: Cluster) -> PlacementProblem:
        """The problem of placing a graph on the cluster.

        Raises:
            PlacetoError: an unknown grouping, a pin that makes no sense or cannot be obeyed, an
                order of microbatches for a step of one.
        """
        order = "fifo" if self.order in (None, "none") else self.order
        problem = PlacementProblem(
            graph, cluster, parse_grouping(self.grouping), order=order, objective=self.objective
        )
        if self.pin:
            # The groups of the pinned ops are known only by now; grouping again would be slow.
            pins = parse_pins(self.pin, problem)
            problem = replace(problem, grouping=problem.op_group, pins=pins)
        return problem if self.order is not None else ordered(problem)


@dataclass(frozen=True, kw_only=True)
class ProblemsArguments:
    """What describes many problems: each graph on each cluster.

    Attributes:
        graphs: Bundled graphs, graph files, families (family:cifar10), or folders that `placeto
            extract family:NAME -o DIR` made.
        cluster: Presets (see `placeto list`) or cluster files; every graph is placed on each.
        order: Which of a device's ready ops goes first; those of microbatches are for graphs that
            have more than one (see `placeto place --help`). By default eager-1f1b for these, and
            fifo for others.
    """

    graphs: Annotated[tuple[str, ...], arg(metavar="GRAPH|FAMILY …")]
    cluster: Annotated[tuple[str, ...], arg(metavar="PRESET|FILE …")]
    grouping: GroupingText = "auto"
    order: NamedOrder | None = None

    def problems(
        self,
        split: str | None,
        graphs: tuple[str, ...] | None = None,
        per_graph: int | None = None,
    ) -> list[PlacementProblem]:
        """Every graph, or every one of other `graphs`, on every cluster, graph by graph.

        With `per_graph` each is on so many of the clusters, which take turns.

        Raises:
            PlacetoError: see `load_graphs`, which takes the split, and `PlacementProblem`.
        """
        clusters = [load_cluster(name) for name in dict.fromkeys(self.cluster)]
        turns, grouping = cycle(clusters), parse_grouping(self.grouping)
        count = min(per_graph or len(clusters), len(clusters))
        return [
            PlacementProblem(graph, cluster, grouping, order=self.order or usual_order(graph))
            for graph in load_graphs(self.graphs if graphs is None else graphs, split)
            for cluster in islice(turns, count)
        ]


def usual_order(graph: ComputationGraph) -> NamedOrder:
    """The order that a graph is trained and evaluated in where none is named."""
    return "eager-1f1b" if graph.num_microbatches > 1 else "fifo"


def parse_grouping(text: str) -> Grouping:
    """`auto`, `papers`, `none` as they are, `128` as a number."""
    try:
        return int(text)
    except ValueError:
        return text


def parse_methods(text: str | None, usual: Iterable[str]) -> list[str]:
    """Placers with commas between them, none twice; the usual ones where none are named.

    Raises:
        PlacetoError: one is unknown.
    """
    names = usual if text is None else (name.strip() for name in text.split(","))
    methods = list(dict.fromkeys(names))
    for method in methods:
        find_placer(method)
    return methods


def parse_settings(texts: tuple[str, ...], method: str) -> dict[str, object]:
    """Settings of a placer, by name, from texts that are each `NAME=VALUE`.

    Raises:
        PlacetoError: not of that form, a name that the placer does not have, or one given twice.
    """
    settings: dict[str, object] = {}
    for text in texts:
        config = find_config(method)
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            known = ", ".join(config.settings)
            raise PlacetoError(f"--set {text}: expected NAME=VALUE; settings of {method}: {known}")
        if name in settings:
            raise PlacetoError(f"--set {text}: {name} is set twice")
        settings[name] = config.read(name, value)
    return settings


def parse_pins(pins: tuple[str, ...], problem: PlacementProblem) -> dict[int, int]:
    """Pins as group -> device, both by number, of a problem that has its grouping already.

    Each is `GROUP=DEVICE`: a group's number or an op of it, a device's name or number.

    Raises:
        PlacetoError: not of that form, an unknown op or device, or one group on two devices.
    """
    names = [device.name for device in problem.cluster.devices]
    devices: dict[int, int] = {}
    for pin in pins:
        name, equals, device_name = pin.rpartition("=")
        if not (name and equals and device_name):
            raise PlacetoError(f"--pin {pin}: expected GROUP=DEVICE, such as 0={names[0]}")
        try:
            device = problem.cluster.device_index(device_name)
        except PlacetoError as error:
            raise PlacetoError(f"--pin {pin}: {error}") from error
        group = _group(name, pin, problem)
        if devices.setdefault(group, device) != device:
            both = f"both {names[devices[group]]!r} and {names[device]!r}"
            raise PlacetoError(f"--pin {pin}: group {group} is pinned to {both}")
    return devices


def _group(name: str, pin: str, problem: PlacementProblem) -> int:
    if name.isascii() and name.isdigit() and len(name) < 10:
        return int(name)
    op_names = problem.graph.op_names
    if name not in op_names:
        raise PlacetoError(
            f"--pin {pin}: graph {problem.graph.name!r} has no op {name!r}; give "
            f"an op's name or a group from 0 to {problem.num_groups - 1}"
        )
    return int(problem.op_group[op_names.index(name)])
