"""Schedules as Chrome-trace JSON, the format that Perfetto (https://ui.perfetto.dev) opens.

The format: "Trace Event Format", Google, 2016. Times are given to the nanosecond.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.schedule import Schedule, memory_over_time
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json

DEVICES, CHANNELS, LINKS = 1, 2, 3

Event = dict[str, Any]


def timeline(problem: PlacementProblem, schedule: Schedule) -> dict[str, Any]:
    """The schedule as a Chrome-trace document.

    The process `devices` has a thread a device with a slice an op and a slice for each transfer
    that it sends or receives, if that costs it anything, and a counter a device with its memory in
    use; the process `channels` has a thread a channel with a slice a transfer, from its start until
    its last byte is sent; channels with a path have theirs on the threads of the process `links`.
    What takes no time, an op of zero duration or the transfer of a control dependency, is an
    instant event. Slices on a thread never overlap, but that of an op holds those that it has to
    wait for while it runs. Times are in microseconds.

    Raises:
        PlacetoError: an op of the schedule never finishes.
    """
    if not math.isfinite(schedule.step_time):
        op = int(np.argmin(np.isfinite(schedule.finish)))
        device = schedule.devices[problem.op_group[op]]
        raise PlacetoError(
            f"no timeline of a step that never ends: op {problem.graph.op_names[op]!r} cannot run "
            f"on {problem.cluster.devices[device].name!r}, or waits for one that cannot run"
        )
    cluster = problem.cluster
    events = [
        *track_names(DEVICES, "devices", [device.name for device in cluster.devices]),
        *track_names(CHANNELS, "channels", [channel.name for channel in cluster.channels]),
        *(
            track_names(LINKS, "links", [link.name for link in cluster.links])
            if cluster.links
            else ()
        ),
        *_op_events(problem, schedule),
        *_transfer_events(problem, schedule),
        *_memory_events(problem, schedule),
    ]
    names = {"graph": problem.graph.name, "cluster": cluster.name}
    other = names | {"step_seconds": schedule.step_time}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def save_timeline(problem: PlacementProblem, schedule: Schedule, path: str | Path) -> None:
    """Writes the schedule as a Chrome-trace file (`.json` or `.json.gz`).

    Raises:
        PlacetoError: an op of the schedule never finishes, or the file cannot be written.
    """
    write_json(path, timeline(problem, schedule))


def track_names(process: int, title: str, names: list[str]) -> list[Event]:
    """Events that name a process and its threads and keep both in this order."""
    events = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}},
        {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}},
    ]
    for thread, name in enumerate(names):
        track = {"ph": "M", "pid": process, "tid": thread}
        events.append(track | {"name": "thread_name", "args": {"name": name}})
        events.append(track | {"name": "thread_sort_index", "args": {"sort_index": thread}})
    return events


def _op_events(problem: PlacementProblem, schedule: Schedule) -> list[Event]:
    graph = problem.graph
    output_bytes = np.zeros(graph.num_ops, dtype=np.int64)
    np.add.at(output_bytes, graph.tensor_producer, graph.tensor_bytes)
    devices = schedule.devices[problem.op_group].tolist()
    events: list[Event] = []
    for op in np.argsort(schedule.start, kind="stable").tolist():
        start, finish = schedule.start[op], schedule.finish[op]
        args = {
            "op": op,
            "group": int(problem.op_group[op]),
            "output_bytes": int(output_bytes[op]),
            "param_bytes": int(graph.param_bytes[op]),
            "temp_bytes": int(graph.temp_bytes[op]),
        }
        event = span(DEVICES, devices[op], graph.op_names[op], start, finish)
        events.append(event | {"cat": graph.op_types[op], "args": args})
    return events


def _transfer_events(problem: PlacementProblem, schedule: Schedule) -> list[Event]:
    graph, transfers, parts = problem.graph, schedule.transfers, schedule.transfers.parts
    events: list[Event] = []
    for part in np.argsort(parts.start, kind="stable").tolist():
        index, device, link = (
            int(column[part]) for column in (parts.transfer, parts.device, parts.link)
        )
        tensor, channel = int(transfers.tensor[index]), int(transfers.channel[index])
        producer = graph.op_names[graph.tensor_producer[tensor]]
        destinations = np.flatnonzero(transfers.destinations[index]).tolist()
        process, thread, name = CHANNELS, channel, producer
        if device >= 0:
            receives = transfers.destinations[index, device]
            process, thread = DEVICES, device
            name = f"{'receive' if receives else 'send'} {producer}"
        elif link >= 0:
            process, thread = LINKS, link
        event = span(process, thread, name, parts.start[part], parts.finish[part])
        args = {
            "tensor": tensor,
            "producer": producer,
            "bytes": int(graph.tensor_bytes[tensor]),
            "destinations": [problem.cluster.devices[device].name for device in destinations],
            "request": _microseconds(_nanoseconds(transfers.request[index])),
            "arrival": _microseconds(_nanoseconds(transfers.arrival[index])),
        }
        events.append(event | {"cat": "transfer", "args": args})
    return events


def _memory_events(problem: PlacementProblem, schedule: Schedule) -> list[Event]:
    instants, memory = memory_over_time(problem, schedule)
    times = [_microseconds(_nanoseconds(instant)) for instant in instants]
    events: list[Event] = []
    for used, device in zip(memory.T, problem.cluster.devices, strict=True):
        counter = {"ph": "C", "pid": DEVICES, "name": f"memory {device.name}"}
        changed = np.flatnonzero(np.diff(used, prepend=-1)).tolist()
        events.extend(counter | {"ts": times[i], "args": {"bytes": int(used[i])}} for i in changed)
    return events


def span(process: int, thread: int, name: str, begin: float, end: float) -> Event:
    """A slice from `begin` to `end`, in seconds; an instant event where they are the same."""
    # Rounding keeps order, so what does not overlap in seconds does not in nanoseconds.
    first, last = _nanoseconds(begin), _nanoseconds(end)
    event = {"pid": process, "tid": thread, "name": name, "ts": _microseconds(first)}
    if begin == end:
        return {"ph": "i", "s": "t"} | event
    return {"ph": "X", "dur": _microseconds(last - first)} | event


def _nanoseconds(seconds: float) -> int:
    return round(float(seconds) * 1e9)


def _microseconds(nanoseconds: int) -> float:
    """Microseconds that come back as these nanoseconds, whether a reader cuts or rounds."""
    value = nanoseconds / 1000
    return value if int(value * 1000) >= nanoseconds else math.nextafter(value, math.inf)
