"""Rows of JSON, the same for every command: seconds, bytes, names; null where not finite."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypedDict

import numpy as np

from placeto.bounds import infeasibility, lower_bound
from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.measurement import Measurement
from placeto.placement import Placement
from placeto.placers import place
from placeto.placers.measured import Measured
from placeto.problem import PlacementProblem
from placeto.simulation import alive_microbatches, bubble_share, simulate
from placeto.support.arrays import Ints


class MeasurementRow(TypedDict):
    """What a run of a placement yielded."""

    feasible: bool
    reason: str
    step_time: float | None
    deviation: float | None
    interval: list[float | None]
    pace: float | None
    samples: list[float]
    examples_per_second: float | None


class ChannelRow(TypedDict):
    """What was measured of a channel; see `channel_rows`."""

    channel: str
    bandwidth: float
    latency_seconds: float
    overhead_seconds: float
    send: list[dict[str, float]]
    receive: list[dict[str, float]]
    error: float | None


class CandidateRow(MeasurementRow):
    """A placement of a search that was run, and whether it is the fastest; see `candidate_rows`."""

    method: str
    simulated_step_time: float | None
    predicted_step_time: float | None
    ratio: float | None
    runs: int
    given_up: bool
    kept: bool


class DeviceRow(TypedDict):
    """What a device has of a placement."""

    device: str
    kind: str
    groups: int
    ops: int
    work_seconds: float | None
    peak_memory: int
    memory_limit: int


class PipelineRow(TypedDict):
    """What a pipelined step leaves idle and keeps alive; see `pipeline_row`."""

    microbatches: int
    bubble: float
    alive_microbatches: list[int]


class EvaluationRow(TypedDict):
    """What a method found on a problem; keys as in `placement_row`."""

    graph: str
    cluster: str
    num_groups: int
    method: str
    step_time: float | None
    single_device_step_time: float | None
    ratio: float | None
    examples_per_second: float | None
    feasible: bool
    wall_seconds: float
    evaluations: int
    seed: int


class MeanRow(TypedDict):
    """How a method does on all problems; see `geometric_means`."""

    method: str
    ratio: float | None
    wall_seconds: float
    problems: int
    infeasible: int


@dataclass(frozen=True)
class Baseline:
    """What the placements of one problem are measured by.

    Attributes:
        single: the best single device's placement; pins are obeyed.
        infeasibility: why no placement fits in memory; None if that is not proven beforehand.
        ordered: the problem in an order of a placement's own, if that has one; the bound is of it.
    """

    single: Placement
    infeasibility: str | None = None
    ordered: PlacementProblem | None = None

    @cached_property
    def lower_bound(self) -> float:
        """Seconds that no feasible placement is below, by the problem's objective."""
        return lower_bound(self.ordered or self.single.problem)

    @property
    def single_device(self) -> int:
        """The best single device, which has most groups where it cannot have all."""
        return int(np.bincount(self.single.devices).argmax())

    def bound(self, placement: Placement) -> float:
        """The lower bound, by what proves most: it, or the placer of a placement."""
        return max(self.lower_bound, placement.lower_bound)

    def gap(self, placement: Placement) -> float | None:
        """At most how many times the optimum a feasible placement takes; else None."""
        return ratio(placement.seconds, self.bound(placement)) if placement.feasible else None

    def ratio(self, placement: Placement) -> float | None:
        """A placement's seconds, by the problem's objective, over the best single device's."""
        return ratio(placement.seconds, self.single.seconds)

    def why_nothing_fits(self, placement: Placement) -> str | None:
        """Why no placement fits in memory, as far as it is proven: beforehand, or by the placer."""
        if self.infeasibility is None and math.isinf(placement.lower_bound):
            return f"no placement fits in memory: {placement.method} has ruled out every one"
        return self.infeasibility


def channel_rows(cluster: Cluster, errors: Sequence[float]) -> list[ChannelRow]:
    """A calibrated cluster's channels; errors are how far each is off its fit, none if kept."""
    return [
        {
            "channel": channel.name,
            "bandwidth": channel.bandwidth,
            "latency_seconds": channel.latency_seconds,
            "overhead_seconds": channel.overhead_seconds,
            "send": [asdict(cost) for cost in channel.send],
            "receive": [asdict(cost) for cost in channel.receive],
            "error": error,
        }
        for channel, error in zip_longest(cluster.channels, errors)
    ]


def baseline(problem: PlacementProblem) -> Baseline:
    """The best single device and the bounds of a problem."""
    return Baseline(place(problem, "single"), infeasibility(problem))


def placement_row(placement: Placement, base: Baseline, grouping: str) -> dict[str, Any]:
    """A placement of the problem of `base` as JSON; its grouping as it was asked for.

    Returns:
        The keys of `placeto place --json` in the design, and: `grouping`, `num_groups`, `order`
        (its name, or `ranks`), `objective`, `examples_per_second` (of steps; null where the graph
        does not know its batch), `microbatch_seconds` (of a pipeline that never drains)
        and `single_device_microbatch_seconds`, `ratio` (step time over that of the best single
        device; these, and the lower bound, are of the seconds a microbatch where the objective is
        throughput), `gap` (that over the lower bound: at
        most so many times the optimum; null unless feasible), `infeasibility` (why no placement
        fits in memory, or null), `single_device_feasible`, `devices` (names), `memory_limit`
        (bytes, one a device, as `peak_memory`), `interrupted`, `settings` (those given to the
        placer, by name), `found_by` (the part of the placer that found it, if it has parts; else
        the method), `pipeline` (see `pipeline_row`).
    """
    problem = placement.problem
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "method": placement.method,
        "grouping": grouping,
        "num_groups": problem.num_groups,
        "order": order_name(problem),
        "objective": problem.objective,
        "step_time": seconds(placement.step_time),
        "examples_per_second": examples_per_second(problem.graph, placement.step_time),
        "microbatch_seconds": seconds(placement.microbatch_seconds),
        "single_device_step_time": seconds(base.single.step_time),
        "single_device_microbatch_seconds": seconds(base.single.microbatch_seconds),
        "single_device_feasible": base.single.feasible,
        "ratio": base.ratio(placement),
        "lower_bound": seconds(base.bound(placement)),
        "gap": base.gap(placement),
        "infeasibility": base.why_nothing_fits(placement),
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
        "pipeline": pipeline_row(placement),
        "placement": placement.device_names(),
    }


def pipeline_row(placement: Placement) -> PipelineRow | None:
    """A placement of a step of several microbatches as a pipeline; None for any other step.

    Returns:
        `microbatches`, `bubble` (see `bubble_share`) and `alive_microbatches` (of each device, see
        there). None also where the step never ends, or takes no time.
    """
    problem = placement.problem
    if problem.graph.num_microbatches == 1 or not 0 < placement.step_time < math.inf:
        return None
    schedule = simulate(problem, placement.devices)
    return {
        "microbatches": problem.graph.num_microbatches,
        "bubble": bubble_share(problem, schedule),
        "alive_microbatches": alive_microbatches(problem, schedule).tolist(),
    }


def measurement_row(measurement: Measurement, graph: ComputationGraph) -> MeasurementRow:
    """What a run of a placement of a graph yielded, as JSON: seconds, null where it failed.

    `pace` is how many times as long as ever a fixed piece of work took on the slowest core.
    """
    return {
        "feasible": measurement.feasible,
        "reason": measurement.reason,
        "step_time": seconds(measurement.step_time),
        "deviation": seconds(measurement.deviation),
        "interval": [seconds(end) for end in measurement.interval],
        "pace": measurement.pace if measurement.feasible else None,
        "samples": list(measurement.samples),
        "examples_per_second": examples_per_second(graph, measurement.step_time),
    }


def candidate_rows(measured: Measured) -> list[CandidateRow]:
    """Placements that were run, as JSON, in the order of their first runs.

    Returns:
        The keys of `measurement_row`, of all steps of all runs, and: `method` (what found it),
        `simulated_step_time` (by the costs as given), `predicted_step_time` (by the costs as
        corrected by all runs), `ratio` (its step time over that of the first that ran, the best
        single device if it does: of steps in turn, the median), `runs`, `given_up` (whether others
        were faster by more than the noise), `kept`.
    """
    return [
        {
            "method": each.found_by,
            "simulated_step_time": seconds(each.simulated_step_time),
            "predicted_step_time": seconds(each.predicted_step_time),
            "ratio": seconds(each.ratio),
            "runs": len(each.runs) + each.failures,
            "given_up": each.given_up,
            "kept": each is measured.kept,
            **measurement_row(each.measurement, measured.placement.problem.graph),
        }
        for each in measured.candidates
    ]


def measured_keys(measured: Measured, rows: list[CandidateRow]) -> dict[str, Any]:
    """What `placeto place --measure --json` has beside the keys of `placement_row`.

    Returns:
        Of the placement that was kept, null if none could be run: `measured_step_time`,
        `measured_interval` and `predicted_step_time`. And `measured` (see `candidate_rows`),
        `noise` (the share by which two runs of a placement differ, beside the single device) and
        `stopped` (why there were no more runs).
    """
    kept = kept_row(rows)
    return {
        "measured_step_time": kept and kept["step_time"],
        "measured_interval": kept and kept["interval"],
        "predicted_step_time": kept and kept["predicted_step_time"],
        "measured": rows,
        "noise": measured.noise,
        "stopped": measured.stopped,
    }


def kept_row(rows: Sequence[CandidateRow]) -> CandidateRow | None:
    """Of placements that were run, the one that was kept; None if none could be run."""
    return next((row for row in rows if row["kept"]), None)


def device_rows(placement: Placement) -> list[DeviceRow]:
    """What each device has of a placement: groups, ops, seconds of work, memory."""
    problem, count = placement.problem, placement.problem.num_devices
    op_device = placement.devices[problem.op_group]
    work = problem.seconds_of(placement.devices)
    groups = np.bincount(placement.devices, minlength=count).tolist()
    ops = np.bincount(op_device, minlength=count).tolist()
    busy = np.bincount(op_device, weights=work, minlength=count).tolist()
    return [
        {
            "device": device.name,
            "kind": device.kind,
            "groups": groups[number],
            "ops": ops[number],
            "work_seconds": seconds(busy[number]),
            "peak_memory": int(placement.peak_memory[number]),
            "memory_limit": device.memory_bytes,
        }
        for number, device in enumerate(problem.cluster.devices)
    ]


def evaluation_row(found: Placement, single: Placement) -> EvaluationRow:
    """What a method found on a problem, beside the best single device's placement."""
    problem = found.problem
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "num_groups": problem.num_groups,
        "method": found.method,
        "step_time": seconds(found.step_time),
        "single_device_step_time": seconds(single.step_time),
        "ratio": ratio(found.step_time, single.step_time),
        "examples_per_second": examples_per_second(problem.graph, found.step_time),
        "feasible": found.feasible,
        "wall_seconds": found.wall_seconds,
        "evaluations": found.evaluations,
        "seed": found.seed,
    }


def geometric_means(rows: Sequence[EvaluationRow]) -> list[MeanRow]:
    """A row a method: how it does on all problems.

    Returns:
        `method`, `ratio` (the geometric mean over the problems that it fits; null where it fits
        none), `wall_seconds` (the mean over all problems), `problems` (how many it was
        run on) and `infeasible` (on how many of these it found nothing that fits in memory).
    """
    means: list[MeanRow] = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        ratios = [row["ratio"] for row in own if row["feasible"] and row["ratio"] is not None]
        means.append(
            {
                "method": method,
                "ratio": float(np.exp(np.log(ratios).mean())) if ratios else None,
                "wall_seconds": float(np.mean([row["wall_seconds"] for row in own])),
                "problems": len(own),
                "infeasible": sum(not row["feasible"] for row in own),
            }
        )
    return means


def fullest(peaks: Sequence[int] | Ints, limits: Sequence[int] | Ints) -> int:
    """The device nearest to its memory limit; a limit of 0 bytes counts as 1."""
    return int(np.argmax(np.asarray(peaks) / np.maximum(limits, 1)))


def order_name(problem: PlacementProblem) -> str:
    """The name of a problem's order, or `ranks`."""
    return problem.order if isinstance(problem.order, str) else "ranks"


def seconds(value: float) -> float | None:
    """Seconds as JSON has them: null where infinite."""
    return float(value) if math.isfinite(value) else None


def examples_per_second(graph: ComputationGraph, step_time: float) -> float | None:
    """Examples of the batch over a step time; null where one of them is no number."""
    return None if graph.batch is None else ratio(graph.batch, step_time)


def ratio(step_time: float, reference: float) -> float | None:
    """How many times `reference` a step time is; null where that is no number."""
    if not (math.isfinite(step_time) and math.isfinite(reference) and reference > 0):
        return None
    return float(step_time / reference)
