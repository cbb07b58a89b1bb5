"""A measured step beside the simulated one, as Chrome-trace JSON (https://ui.perfetto.dev)."""

from collections.abc import Sequence
from typing import Any

from placeto.measurement.measured import Measurement
from placeto.measurement.trace import Trace, read_trace
from placeto.problem import PlacementProblem
from placeto.simulation import Schedule
from placeto.simulation.timeline import Event, span, timeline, track_names

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
    document["traceEvents"] += _measured_events(problem, trace)
    document["otherData"] |= {
        "measured_step_seconds": measurement.step_time,
        "traced_step_seconds": trace.seconds,
    }
    return document


def _measured_events(problem: PlacementProblem, trace: Trace) -> list[Event]:
    devices = [device.name for device in problem.cluster.devices]
    channels = [channel.name for channel in problem.cluster.channels]
    numbers = {name: number for number, name in enumerate(problem.graph.op_names)}
    ops = []
    for run in trace.ops:
        args: dict[str, Any] = {"kernel_us": round(run.seconds * 1e6, 3)}
        if (number := numbers.get(run.op)) is not None:  # else the runtime has added it
            args |= {"op": number, "group": int(problem.op_group[number])}
        event = span(DEVICES, run.device, run.op, run.begin, run.end)
        ops.append(event | {"cat": run.type, "args": args})
    transfers = []
    for each in trace.received:
        channel = int(problem.cluster.channel_between[each.source, each.destination])
        args = {
            "producer": each.producer,
            "bytes": each.num_bytes,
            "source": devices[each.source],
            "destinations": [devices[each.destination]],
        }
        event = span(CHANNELS, channel, each.producer, each.begin, each.end)
        transfers.append(event | {"cat": "transfer", "args": args})
    return [
        *_laid_out(DEVICES, "measured devices", devices, ops),
        *_laid_out(CHANNELS, "measured channels", channels, transfers),
    ]


def _laid_out(
    process: int, title: str, names: Sequence[str], events: Sequence[Event]
) -> list[Event]:
    """Events on further threads where they would overlap on the ones that they are on."""
    tracks = list(names)
    # Of each device or channel its threads, each with the instant from which it is free.
    free: list[list[tuple[int, float]]] = [[(number, 0.0)] for number in range(len(names))]
    placed = []
    for event in sorted(events, key=lambda each: each["ts"]):
        lanes = free[event["tid"]]
        lane = next((i for i, (_, end) in enumerate(lanes) if end <= event["ts"]), len(lanes))
        if lane == len(lanes):
            lanes.append((len(tracks), 0.0))
            tracks.append(f"{names[event['tid']]} ({lane + 1})")
        thread = lanes[lane][0]
        lanes[lane] = (thread, event["ts"] + event.get("dur", 0.0))
        placed.append(event | {"tid": thread})
    return [*track_names(process, title, tracks), *placed]
