"""A measured step beside the simulated one, as Chrome-trace JSON (https://ui.perfetto.dev)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeto.measurement.trace import read_trace
from placeto.simulation.timeline import Event, span, timeline, track_names
from placeto.support.files import write_json

if TYPE_CHECKING:
    from placeto.measurement.measured import Measurement
    from placeto.measurement.trace import OpRun, Received, Trace
    from placeto.problem import PlacementProblem
    from placeto.simulation import Schedule

DEVICES, CHANNELS = 3, 4


def side_by_side(
    problem: PlacementProblem, schedule: Schedule, measurement: Measurement
) -> dict[str, Any]:
    """The simulated and the measured step of one placement in one Chrome-trace document.

    The processes `simulated devices` and `simulated channels` are those of
    `placeto.simulation.timeline`; `measured devices` and `measured channels` have the same
    threads. An op's slice goes from the instant at which the executor takes it up until its
    outputs are stored; a transfer's from the instant at which the sender has the tensor until it
    is there. What overlaps on a device or a channel is on further threads, `worker0 (2)` and so
    on. Both steps begin at 0. Clocks of different machines are not aligned.

    Args:
        problem: what was placed.
        schedule: the simulated step.
        measurement: the measured one, with a trace.

    Raises:
        PlacetoError: an op of the schedule never finishes, or the trace cannot be read.
    """
    document = timeline(problem, schedule)
    for event in document["traceEvents"]:
        if event["name"] == "process_name":
            event["args"] = {"name": f"simulated {event['args']['name']}"}
    names = [str(device) for device in problem.cluster.tensorflow_devices()]
    trace = read_trace(measurement.traces[-1], names)
    document["traceEvents"] += measured_events(problem, trace)
    ends = [run.end for run in trace.ops] + [each.end for each in trace.received]
    document["otherData"] |= {
        "measured_step_seconds": measurement.step_time,
        "traced_step_seconds": max(ends),
    }
    return document


def save_side_by_side(
    problem: PlacementProblem, schedule: Schedule, measurement: Measurement, path: str | Path
) -> None:
    """Writes both steps as a Chrome-trace file (`.json` or `.json.gz`).

    Raises:
        PlacetoError: see `side_by_side`, or the file cannot be written.
    """
    write_json(path, side_by_side(problem, schedule, measurement))


def measured_events(problem: PlacementProblem, trace: Trace) -> list[Event]:
    """The events of a measured step; see `side_by_side`."""
    devices = [device.name for device in problem.cluster.devices]
    channels = [channel.name for channel in problem.cluster.channels]
    between = problem.cluster.channel_between
    on_devices = [
        (run.device, _op_event(problem, number, run)) for number, run in _known(problem, trace.ops)
    ]
    on_channels = [
        (int(between[each.source, each.destination]), _received_event(devices, each))
        for each in trace.received
    ]
    return [
        *_laid_out(DEVICES, "measured devices", devices, on_devices),
        *_laid_out(CHANNELS, "measured channels", channels, on_channels),
    ]


def _known(problem: PlacementProblem, runs: Sequence[OpRun]) -> Iterator[tuple[int | None, OpRun]]:
    numbers = {name: number for number, name in enumerate(problem.graph.op_names)}
    return ((numbers.get(run.op), run) for run in runs)


def _op_event(problem: PlacementProblem, number: int | None, run: OpRun) -> Event:
    args: dict[str, Any] = {"kernel_us": round(run.seconds * 1e6, 3)}
    if number is not None:  # else the runtime has added it
        args |= {"op": number, "group": int(problem.op_group[number])}
    event = span(DEVICES, run.device, run.op, run.begin, run.end)
    return event | {"cat": run.type, "args": args}


def _received_event(devices: Sequence[str], each: Received) -> Event:
    args = {
        "producer": each.producer,
        "bytes": each.num_bytes,
        "source": devices[each.source],
        "destinations": [devices[each.destination]],
    }
    event = span(CHANNELS, 0, each.producer, each.begin, each.end)
    return event | {"cat": "transfer", "args": args}


def _laid_out(
    process: int, title: str, names: Sequence[str], events: Sequence[tuple[int, Event]]
) -> list[Event]:
    """Events on threads, so that none overlap; each has the number of its first thread."""
    tracks = list(names)
    # Of each device or channel its threads, each with the instant from which it is free.
    free: list[list[tuple[int, float]]] = [[(number, 0.0)] for number in range(len(names))]
    placed = []
    for number, event in sorted(events, key=lambda each: each[1]["ts"]):
        lanes = free[number]
        lane = next((i for i, (_, end) in enumerate(lanes) if end <= event["ts"]), len(lanes))
        if lane == len(lanes):
            lanes.append((len(tracks), 0.0))
            tracks.append(f"{names[number]} ({lane + 1})")
        thread = lanes[lane][0]
        lanes[lane] = (thread, event["ts"] + event.get("dur", 0.0))
        placed.append(event | {"tid": thread})
    return [*track_names(process, title, tracks), *placed]
