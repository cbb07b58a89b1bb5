"""Rows of JSON, the same for every command: seconds, bytes, names; null where not finite."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np

from placeto.bounds import infeasibility, lower_bound
from placeto.measurement import Measurement
from placeto.placement import Placement
from placeto.placers import place
from placeto.problem import PlacementProblem

if TYPE_CHECKING:
    from placeto.measurement.calibration import Check


class MeasurementRow(TypedDict):
    """What a run of a placement yielded."""

    feasible: bool
    reason: str
    step_time: float | None
    deviation: float | None
    interval: list[float | None]
    samples: list[float]


class CandidateRow(MeasurementRow):
    """A placement of a search that was run, and whether it is the fastest."""

    method: str
    simulated_step_time: float | None
    kept: bool


class MeasureRow(MeasurementRow):
    """A placement that was run, beside its simulation; see `placeto measure --json`."""

    graph: str
    cluster: str
    placement: str
    warm_up: int
    simulated_step_time: float | None
    order: str
    in_order: float | None
    send_wait: float | None
    timeline: str | None


class OverheadRow(TypedDict):
    """What a device takes besides its ops, in seconds."""

    device: str
    kind: str
    op_overhead: float
    step_overhead: float


class ChannelRow(TypedDict):
    """A channel as it was fitted."""

    channel: str
    bandwidth: float
    latency_seconds: float
    overhead_seconds: float
    error: float


class CalibrationRow(TypedDict):
    """What was measured of a cluster; see `placeto calibrate --json`."""

    cluster: str
    source: str
    devices: list[OverheadRow]
    channels: list[ChannelRow]
    graphs: "list[Check]"
    files: list[str]


class PlacementRow(TypedDict):
    """A placement; see `placement_row`."""

    graph: str
    cluster: str
    method: str
    grouping: str
    num_groups: int
    step_time: float | None
    single_device_step_time: float | None
    single_device_feasible: bool
    ratio: float | None
    lower_bound: float | None
    gap: float | None
    infeasibility: str | None
    feasible: bool
    devices: list[str]
    peak_memory: list[int]
    memory_limit: list[int]
    wall_seconds: float
    found_by: str
    evaluations: int
    seed: int
    settings: dict[str, object]
    interrupted: bool
    placement: list[str]
    # Where placements were run for real.
    measured_step_time: NotRequired[float | None]
    measured: NotRequired[list[CandidateRow]]
    # In a report: whether it is the one that is explained.
    chosen: NotRequired[bool]


class GraphListing(TypedDict):
    """A graph that ships."""

    name: str
    ops: int
    groups: int
    kind: str | None
    source: str | None
    op_seconds: list[str]


class FamilyListing(TypedDict):
    """A family of models, and how many graphs of it each split has."""

    name: str
    summary: str
    graphs: Mapping[str, int]


class DeviceListing(TypedDict):
    """A device of a preset."""

    name: str
    kind: str
    memory_bytes: int


class ClusterListing(TypedDict):
    """A preset."""

    name: str
    devices: list[DeviceListing]
    source: str


class PlacerListing(TypedDict):
    """A placer, and its settings with their defaults."""

    name: str
    summary: str
    settings: Mapping[str, object]


class PolicyListing(TypedDict):
    """A policy that ships."""

    name: str


class Listing(TypedDict):
    """What ships with the package; see `placeto list --json`."""

    graphs: list[GraphListing]
    families: list[FamilyListing]
    clusters: list[ClusterListing]
    placers: list[PlacerListing]
    policies: list[PolicyListing]


class DeviceRow(TypedDict):
    """What a device has of a placement."""

    device: str
    kind: str
    groups: int
    ops: int
    work_seconds: float | None
    peak_memory: int
    memory_limit: int


@dataclass(frozen=True)
class Baseline:
    """What the placements of one problem are measured by.

    Attributes:
        problem: what is placed.
        single: the best single device's placement; pins are obeyed.
        infeasibility: why no placement fits in memory; None if that is not proven.
    """

    problem: PlacementProblem
    single: Placement
    infeasibility: str | None = None

    @cached_property
    def lower_bound(self) -> float:
        """Seconds that no feasible placement's step time is below; worked out when asked for."""
        return lower_bound(self.problem)


def baseline(problem: PlacementProblem) -> Baseline:
    """The best single device and the bounds of a problem."""
    return Baseline(problem, place(problem, "single"), infeasibility(problem))


def placement_row(placement: Placement, base: Baseline, grouping: str) -> PlacementRow:
    """A placement as JSON: seconds, bytes, names; null where a number is not finite.

    Args:
        placement: of the problem that `base` is of.
        base: what to measure it by.
        grouping: the grouping as it was asked for.

    Returns:
        The keys of `placeto place --json` in the design, and: `grouping`, `num_groups`, `ratio`
        (step time over that of the best single device), `gap` (step time over the lower bound: at
        most so many times the optimum; null unless feasible), `infeasibility` (why no placement
        fits in memory, or null), `single_device_feasible`, `devices` (names), `memory_limit`
        (bytes, one a device, as `peak_memory`), `interrupted`, `settings` (those given to the
        placer, by name), `found_by` (the part of the placer that found it, if it has parts; else
        the method).
    """
    problem = placement.problem
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "method": placement.method,
        "grouping": grouping,
        "num_groups": problem.num_groups,
        "step_time": seconds(placement.step_time),
        "single_device_step_time": seconds(base.single.step_time),
        "single_device_feasible": base.single.feasible,
        "ratio": ratio(placement.step_time, base.single.step_time),
        "lower_bound": seconds(max(base.lower_bound, placement.lower_bound)),
        "gap": gap(placement, base),
        "infeasibility": why_nothing_fits(placement, base),
        "feasible": placement.feasible,
        "devices": [device.name for device in problem.cluster.devices],
        "peak_memory": placement.peak_memory.tolist(),
        "memory_limit": problem.memory_limit.tolist(),
        "wall_seconds": placement.wall_seconds,
        "found_by": placement.found_by,
        "evaluations": placement.evaluations,
        "seed": placement.seed,
        "settings": dict(placement.settings),
        "interrupted": placement.interrupted,
        "placement": placement.device_names(),
    }


def why_nothing_fits(placement: Placement, base: Baseline) -> str | None:
    """Why no placement fits in memory, as far as it is proven: beforehand, or by the placer."""
    if base.infeasibility is None and math.isinf(placement.lower_bound):
        return f"no placement fits in memory: {placement.method} has ruled out every one"
    return base.infeasibility


def measurement_row(measurement: Measurement) -> MeasurementRow:
    """What a run of a placement yielded, as JSON: seconds, null where it failed."""
    return {
        "feasible": measurement.feasible,
        "reason": measurement.reason,
        "step_time": seconds(measurement.step_time),
        "deviation": seconds(measurement.deviation),
        "interval": [seconds(end) for end in measurement.interval],
        "samples": list(measurement.samples),
    }


def device_rows(placement: Placement) -> list[DeviceRow]:
    """What each device has of a placement: groups, ops, seconds of work, memory."""
    problem = placement.problem
    op_device = placement.devices[problem.op_group]
    work = problem.op_seconds[np.arange(problem.graph.num_ops), op_device]
    count = problem.num_devices
    return [
        {
            "device": device.name,
            "kind": device.kind,
            "groups": int(groups),
            "ops": int(ops),
            "work_seconds": seconds(float(busy)),
            "peak_memory": int(peak),
            "memory_limit": device.memory_bytes,
        }
        for device, groups, ops, busy, peak in zip(
            problem.cluster.devices,
            np.bincount(placement.devices, minlength=count),
            np.bincount(op_device, minlength=count),
            np.bincount(op_device, weights=work, minlength=count),
            placement.peak_memory,
            strict=True,
        )
    ]


def gap(placement: Placement, base: Baseline) -> float | None:
    """At most how many times the optimum a feasible placement's step time is; else null."""
    if not placement.feasible:
        return None
    return ratio(placement.step_time, max(base.lower_bound, placement.lower_bound))


def seconds(value: float) -> float | None:
    """Seconds as JSON has them: null where infinite."""
    return float(value) if math.isfinite(value) else None


def ratio(step_time: float, reference: float) -> float | None:
    """How many times `reference` a step time is; null where that is no number."""
    if not (math.isfinite(step_time) and math.isfinite(reference) and reference > 0):
        return None
    return float(step_time / reference)
