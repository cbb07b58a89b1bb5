"""Semantics version 1 of the simulator, written a second time: plain Python, slow, no numba.

It shares nothing with `placeto.simulation` but the text of the semantics. Peak memory is worked out
from the finished schedule, as half-open intervals [start, end) on each device.
"""

import heapq
import math
from dataclasses import dataclass

from placeto import Cluster, ComputationGraph


@dataclass(frozen=True)
class ReferenceTransfer:
    tensor: int
    channel: int
    destinations: frozenset[int]
    request: float
    start: float
    sent: float
    arrival: float


@dataclass(frozen=True)
class ReferenceSchedule:
    step_time: float
    start: list[float]
    finish: list[float]
    peak_memory: list[int]
    transfers: set[ReferenceTransfer]
    feasible: bool


def reference_schedule(
    graph: ComputationGraph, cluster: Cluster, device_of: list[int]
) -> ReferenceSchedule:
    """Simulates one step; `device_of` is the device of each op."""
    seconds = [
        float(graph.op_seconds[cluster.devices[device].kind][op])
        for op, device in enumerate(device_of)
    ]
    sizes = graph.tensor_bytes.tolist()
    outputs: dict[int, list[int]] = {op: [] for op in range(graph.num_ops)}
    for tensor, producer in enumerate(graph.tensor_producer.tolist()):
        outputs[producer].append(tensor)
    consumers: dict[int, list[int]] = {tensor: [] for tensor in range(graph.num_tensors)}
    absent: dict[int, set[int]] = {op: set() for op in range(graph.num_ops)}
    for tensor, op in zip(graph.edge_tensor.tolist(), graph.edge_consumer.tolist(), strict=True):
        consumers[tensor].append(op)
        absent[op].add(tensor)

    start: dict[int, float] = {}
    finish: dict[int, float] = {}
    transfers: set[ReferenceTransfer] = set()
    ready: dict[int, list[tuple[float, int]]] = {d: [] for d in range(cluster.num_devices)}
    device_free = dict.fromkeys(ready, 0.0)
    # A request: (instant, lowest consumer that waits, tensor, devices it goes to).
    requests: dict[int, list[tuple[float, int, int, frozenset[int]]]] = {
        channel: [] for channel in range(len(cluster.channels))
    }
    channel_free = dict.fromkeys(requests, 0.0)
    ends: list[tuple[float, int, int]] = []  # (instant, op, -1)
    arrivals: list[tuple[float, int, frozenset[int]]] = []
    alarms: list[float] = [0.0]  # instants at which a device or a channel may become free

    def present(tensor: int, device: int, now: float) -> None:
        for op in consumers[tensor]:
            if device_of[op] == device:
                absent[op].remove(tensor)
                if not absent[op]:
                    heapq.heappush(ready[device], (now, op))

    for op in range(graph.num_ops):
        if not absent[op]:
            heapq.heappush(ready[device_of[op]], (0.0, op))

    while ends or arrivals or alarms:
        now = min(queue[0][0] for queue in (ends, arrivals) if queue) if ends or arrivals else None
        if alarms and (now is None or alarms[0] < now):
            now = alarms[0]
        while alarms and alarms[0] == now:
            heapq.heappop(alarms)
        while True:
            while ends and ends[0][0] == now:
                _, op, _ = heapq.heappop(ends)
                here = device_of[op]
                for tensor in outputs[op]:
                    present(tensor, here, now)
                    elsewhere = {device_of[c] for c in consumers[tensor]} - {here}
                    for channel, bound in bundles(cluster, here, elsewhere):
                        lowest = min(c for c in consumers[tensor] if device_of[c] in bound)
                        heapq.heappush(requests[channel], (now, lowest, tensor, bound))
            while arrivals and arrivals[0][0] == now:
                _, tensor, bound = heapq.heappop(arrivals)
                for device in bound:
                    present(tensor, device, now)
            for channel, waiting in requests.items():
                link = cluster.channels[channel]
                while waiting and channel_free[channel] <= now:
                    request, _, tensor, bound = heapq.heappop(waiting)
                    sent = now + sizes[tensor] / link.bandwidth
                    arrival = sent + link.latency_seconds
                    channel_free[channel] = sent + link.overhead_seconds
                    heapq.heappush(arrivals, (arrival, tensor, bound))
                    if channel_free[channel] > now:
                        heapq.heappush(alarms, channel_free[channel])
                    transfers.add(
                        ReferenceTransfer(tensor, channel, bound, request, now, sent, arrival)
                    )
            if arrivals and arrivals[0][0] == now:
                continue
            idle = [d for d in ready if ready[d] and device_free[d] <= now]
            if not idle:
                break
            device = min(idle)
            _, op = heapq.heappop(ready[device])
            start[op], finish[op] = now, now + seconds[op]
            device_free[device] = finish[op]
            if seconds[op] > 0:
                device_free[device] += cluster.devices[device].launch_overhead_seconds
            heapq.heappush(ends, (finish[op], op, -1))
            if device_free[device] > now:
                heapq.heappush(alarms, device_free[device])

    peak = [
        peak_of(device, graph, device_of, start, finish, consumers, transfers)
        for device in range(cluster.num_devices)
    ]
    return ReferenceSchedule(
        step_time=max(finish.values()),
        start=[start[op] for op in range(graph.num_ops)],
        finish=[finish[op] for op in range(graph.num_ops)],
        peak_memory=peak,
        transfers=transfers,
        feasible=math.inf not in seconds
        and all(
            used <= device.memory_bytes for used, device in zip(peak, cluster.devices, strict=True)
        ),
    )


def bundles(
    cluster: Cluster, source: int, destinations: set[int]
) -> list[tuple[int, frozenset[int]]]:
    """Which channel carries a tensor to which devices, one entry a transfer."""
    found = []
    for number, channel in enumerate(cluster.channels):
        if cluster.devices[source].name not in channel.sources:
            continue
        served = {d for d in destinations if cluster.devices[d].name in channel.destinations}
        if channel.multicast and served:
            found.append((number, frozenset(served)))
        elif not channel.multicast:
            found.extend((number, frozenset({d})) for d in served)
    return found


def peak_of(
    device: int,
    graph: ComputationGraph,
    device_of: list[int],
    start: dict[int, float],
    finish: dict[int, float],
    consumers: dict[int, list[int]],
    transfers: set[ReferenceTransfer],
) -> int:
    """The most bytes that ever live on a device."""
    base = sum(
        size for op, size in enumerate(graph.param_bytes.tolist()) if device_of[op] == device
    )
    lives: list[tuple[float, float, int]] = [
        (start[op], finish[op], size)
        for op, size in enumerate(graph.temp_bytes.tolist())
        if device_of[op] == device
    ]
    last_arrival: dict[int, float] = {}
    for transfer in transfers:
        last_arrival[transfer.tensor] = max(
            last_arrival.get(transfer.tensor, 0.0), transfer.arrival
        )
        if device in transfer.destinations:
            end = max(finish[op] for op in consumers[transfer.tensor] if device_of[op] == device)
            lives.append((transfer.start, end, int(graph.tensor_bytes[transfer.tensor])))
    for tensor, producer in enumerate(graph.tensor_producer.tolist()):
        if device_of[producer] != device:
            continue
        local = [finish[op] for op in consumers[tensor] if device_of[op] == device]
        end = max(finish[producer], last_arrival.get(tensor, 0.0), *local)
        lives.append((start[producer], end, int(graph.tensor_bytes[tensor])))
    changes: dict[float, int] = {}
    for begin, end, size in lives:
        if begin < end:
            changes[begin] = changes.get(begin, 0) + size
            changes[end] = changes.get(end, 0) - size
    used = peak = base
    for instant in sorted(changes):
        used += changes[instant]
        peak = max(peak, used)
    return peak
