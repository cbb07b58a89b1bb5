"""Pipelines of a PyTorch module: where its forward pass can be split, and plans that say where."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from placeto.graph import BACKWARD, ComputationGraph
from placeto.placement.module_devices import modules_meta, torch_devices
from placeto.placement.placement import Placement
from placeto.simulation.stages import PipelineSchedule
from placeto.support.arrays import Bools, Ints
from placeto.support.documents import Document, read_document
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json

FORMAT: Literal["placeto.pipeline"] = "placeto.pipeline"
VERSION = 1

_GRADIENTS = "gradients/"


class Stage(Document, frozen=True):
    """What one process of a pipeline computes.

    Attributes:
        device: as PyTorch calls it where it does, else as the cluster does.
        modules: paths of the modules that it computes; of modules inside of one of these, none.
    """

    device: str
    modules: tuple[str, ...]


class PipelinePlan(Document, frozen=True, kw_only=True):
    """Where a module is split into the stages of a pipeline, and what is expected of that.

    Attributes:
        graph: the graph's name.
        cluster: the cluster's name.
        schedule: `"gpipe"`, `"1f1b"`, or `"interleaved"` with several stages a device, which follow
            each other around the devices.
        microbatches: of a step.
        split_points: paths of the modules that a stage begins with, but for the first stage's.
        stages: in the order in which a microbatch goes forward through them.
        stages_per_process: with `"interleaved"` more than one.
        step_time: seconds, of passes as the schedule runs them, with simulated transfers.
        single_device_step_time: simulated seconds of the same microbatches on the best device that
            they fit on; None if they fit on none.
        peak_memory: simulated bytes of each stage's device, see `simulation.stage_memory`.
        feasible: whether every stage fits into its device's memory.
        bubble: for which share of a step the devices are free.
        examples_per_second: None where the graph does not say how many a step has.
        measured_step_time: seconds of a step as PyTorch ran it; None if that was not measured.
        measured_single_device_step_time: likewise, of one process that has the whole module, with
            the number of microbatches that is best for it.
    """

    format: str = FORMAT
    version: int = VERSION
    graph: str
    cluster: str
    schedule: PipelineSchedule
    microbatches: int
    split_points: tuple[str, ...]
    stages: tuple[Stage, ...]
    step_time: float
    single_device_step_time: float | None
    peak_memory: tuple[int, ...]
    feasible: bool
    bubble: float
    examples_per_second: float | None
    stages_per_process: int = 1
    measured_step_time: float | None = None
    measured_single_device_step_time: float | None = None

    @property
    def processes(self) -> int:
        """How many processes run it: one a device."""
        return len(self.stages) // self.stages_per_process

    def save(self, path: str | Path) -> None:
        """Writes a plan file (`.json` or `.json.gz`)."""
        write_json(path, msgspec.to_builtins(self))


def load_pipeline(path: str | Path) -> PipelinePlan:
    """Reads a plan file.

    Raises:
        PlacetoError: it cannot be read, is no plan file, or its parts do not go together.
    """
    where = f"plan file {str(path)!r}"
    plan = read_document(Path(path), PipelinePlan, FORMAT, VERSION, where)
    if plan.microbatches < 1:
        raise PlacetoError(f"{where}: microbatches is {plan.microbatches}, expected 1 or more")
    if len(plan.split_points) != len(plan.stages) - 1:
        raise PlacetoError(
            f"{where}: there are {len(plan.stages)} stages and {len(plan.split_points)} split "
            "points; expected one between each two stages"
        )
    devices, each = [stage.device for stage in plan.stages], plan.stages_per_process
    if each < 1 or devices != devices[: len(devices) // each] * each:
        raise PlacetoError(
            f"{where}: stages_per_process is {each}, and stages are on {', '.join(devices)}; "
            "expected all devices in turn, as many times"
        )
    if (each > 1) != (plan.schedule == "interleaved"):
        raise PlacetoError(
            f"{where}: stages_per_process is {each}, and schedule {plan.schedule!r}; expected more "
            "than one if interleaved, else one"
        )
    return plan


@dataclass(frozen=True, eq=False)
class Units:
    """The stretches of a module's forward pass that no stage can begin within.

    Attributes:
        of_op: (num_ops,) the stretch of each op: forward, backward and updates alike.
        starts: of each stretch but the first, the path of the module that it begins with.
        forward: what the forward pass of the first microbatch computes, in its order.
    """

    of_op: Ints
    starts: tuple[str, ...]
    forward: Ints


def stage_units(graph: ComputationGraph) -> Units:
    """Where a pipelined step of a PyTorch module can be split into stages.

    A stage begins where a module is called: all that is computed before belongs to stages before.
    No cut parts ops that share a device: those of a module that is placed whole (see `placeto
    extract`; with `together=parameters` there are more cuts), or those that read the same weight.

    Raises:
        PlacetoError: the graph is of no PyTorch module, or its step has one microbatch.
    """
    meta = modules_meta(graph)
    if graph.num_microbatches == 1:
        raise PlacetoError(
            f"graph {graph.name!r} has one microbatch, of which no pipeline can be made; extract "
            "it with ?microbatches=8"
        )
    forward = np.array(
        [
            op
            for op in np.flatnonzero(graph.is_forward & (graph.microbatch == 0)).tolist()
            if graph.op_types[op] != "input"
        ],
        dtype=np.int64,
    )
    paths = [meta["modules"][op] for op in forward]
    # Graphs of an earlier version do not say; a module with ops of its own is called.
    cuts = _cuts(paths, set(meta.get("called_once", filter(None, paths))))
    parted = _parted(graph.colocation[forward])
    starts = {place: path for place, path in sorted(cuts.items()) if not parted[place]}
    unit = np.full(graph.num_ops, -1)
    places = np.arange(len(forward))
    unit[forward] = np.searchsorted(np.array(list(starts), dtype=np.int64), places, side="right")
    _complete(graph, unit)
    return Units(unit, tuple(starts.values()), forward)


def plan_of(
    placement: Placement,
    schedule: PipelineSchedule,
    units: Units,
    single: float | None,
    bubble: float,
) -> PipelinePlan:
    """The plan that a placement is whose groups are units, each stage on one device.

    Args:
        placement: each unit's device.
        schedule: which the order of the placement's problem is.
        units: of its graph.
        single: seconds of the best single device; None if the step fits on none.
        bubble: for which share of the step devices are free.
    """
    problem, devices = placement.problem, placement.devices
    graph, cluster = problem.graph, problem.cluster
    first = np.flatnonzero(np.concatenate([[True], devices[1:] != devices[:-1]]))
    stage = np.searchsorted(first, units.of_op[units.forward], side="right") - 1
    meta = modules_meta(graph)
    inside = _whole([meta["modules"][op] for op in units.forward], stage.tolist())
    names = torch_devices(cluster)
    used = devices[first].tolist()
    own = [cluster.devices[device].name for device in used]
    return PipelinePlan(
        graph=graph.name,
        cluster=cluster.name,
        schedule=schedule,
        microbatches=graph.num_microbatches,
        split_points=tuple(units.starts[unit - 1] for unit in first[1:].tolist()),
        stages=tuple(
            Stage(_torch_name(names.get(name, name)), tuple(inside[number]))
            for number, name in enumerate(own)
        ),
        step_time=placement.step_time,
        single_device_step_time=single,
        peak_memory=tuple(placement.peak_memory[used].tolist()),
        feasible=placement.feasible,
        bubble=bubble,
        stages_per_process=len(used) // len(set(used)),
        examples_per_second=None if graph.batch is None else graph.batch / placement.step_time,
    )


def _torch_name(name: str | int) -> str:
    return f"cuda:{name}" if isinstance(name, int) else name


def _around(path: str | None) -> Iterable[str]:
    """The paths of a module and of all modules around it, the outermost first."""
    return accumulate(path.split("."), "{}.{}".format) if path else ()


def _cuts(paths: Sequence[str | None], once: Collection[str]) -> dict[int, str]:
    """Place in a row of ops, of which the modules are given -> the outermost that begins there.

    It is of those that are called once, and compute without others in between.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, path in enumerate(paths):
        for module in _around(path):
            places[module].append(place)
    cuts: dict[int, str] = {}
    for module in sorted(places, key=lambda path: path.count(".")):
        begin, end = places[module][0], places[module][-1]
        if module in once and begin > 0 and end - begin + 1 == len(places[module]):
            cuts.setdefault(begin, module)
    return cuts


def _parted(keys: Ints) -> Bools:
    """(n,) whether a cut before each of n ops in a row parts ops of one key; -1 is none."""
    change = np.zeros(len(keys) + 2, dtype=np.int64)
    for key in np.unique(keys[keys >= 0]):
        where = np.flatnonzero(keys == key)
        change[where[0] + 1] += 1
        change[where[-1] + 1] -= 1
    return np.asarray(np.cumsum(change)[: len(keys)] > 0)


def _whole(paths: Sequence[str | None], stages: Sequence[int]) -> dict[int, list[str]]:
    """Stage -> the outermost modules of which all ops are in that stage."""
    seen: dict[str, set[int]] = {}
    for path, stage in zip(paths, stages, strict=True):
        for module in _around(path):
            seen.setdefault(module, set()).add(stage)
    found: dict[int, list[str]] = defaultdict(list)
    for module, of in seen.items():
        around = seen.get(module.rpartition(".")[0], {-1, -2})
        if len(of) == 1 and len(around) > 1:
            found[min(of)].append(module)
    return found


def _complete(graph: ComputationGraph, unit: Ints) -> None:
    """Gives the ops without a unit that of what they belong to.

    Whatever shares a device shares a unit. The gradient of an op is where the op is; inputs,
    parameters and constants are where they are first read; what is left, where its results go.
    """
    number = {name: op for op, name in enumerate(graph.op_names)}
    _share(unit, graph.colocation)
    for op in np.flatnonzero((unit < 0) & (graph.phase == BACKWARD)).tolist():
        partner = number.get(_forward_name(graph.op_names[op]), -1)
        unit[op] = unit[partner] if partner >= 0 else -1
    source, target = (ends.tolist() for ends in graph.op_edges)
    readers: list[list[int]] = [[] for _ in range(graph.num_ops)]
    for producer, consumer in zip(source, target, strict=True):
        readers[producer].append(consumer)
    for op in reversed(graph.topological_order.tolist()):
        if unit[op] < 0 and graph.copy_of[op] < 0:
            known = [unit[reader] for reader in readers[op] if unit[reader] >= 0]
            pick = max if graph.phase[op] == BACKWARD else min
            unit[op] = pick(known, default=0)
    _share(unit, graph.colocation)
    copies = np.flatnonzero(graph.copy_of >= 0)
    unit[copies] = unit[graph.copy_of[copies]]


def _forward_name(name: str) -> str:
    """Of a gradient's name, such as `microbatch0/gradients/head/addmm/mm_3`, `…/head/addmm`."""
    scope, found, rest = name.partition(_GRADIENTS)
    return scope + rest.rpartition("/")[0] if found else ""


def _share(unit: Ints, keys: Ints) -> None:
    """Gives all ops of a key the least unit that is known of one."""
    known = (keys >= 0) & (unit >= 0)
    least = np.full(keys.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, keys[known], unit[known])
    found = (keys >= 0) & (least[keys] < np.iinfo(np.int64).max) if len(least) else known
    unit[found] = least[keys[found]]
