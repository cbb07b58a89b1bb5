"""The semantics of the simulator, written a second time: plain Python, slow, no numba.

It shares nothing with `placeto.simulation` but the text of the semantics. Peak memory is worked out
from the finished schedule, as half-open intervals [start, end) on each device.
"""

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from placeto import Cluster, ComputationGraph
from placeto.cluster import EndCost


@dataclass(frozen=True)
class ReferenceTransfer:
    tensor: int
    channel: int
    destinations: frozenset[int]
    request: float
    start: float
    sent: float
    arrival: float
    parts: tuple[tuple[str, int, float, float], ...]  # a device or a link, its number, from, until


@dataclass(frozen=True)
class ReferenceSchedule:
    step_time: float
    start: list[float]
    finish: list[float]
    peak_memory: list[int]
    transfers: set[ReferenceTransfer]
    feasible: bool


def reference_schedule(
    graph: ComputationGraph,
    cluster: Cluster,
    device_of: list[int],
    rank_of: list[float] | None = None,
    held_back: Sequence[tuple[int, int]] = (),
) -> ReferenceSchedule:
    """Simulates one step, of ops with devices, and with ranks or without.

    Of ops that are held back, the second waits for the first.
    """
    rank = rank_of or [0.0] * graph.num_ops
    seconds = [
        float(graph.op_seconds[cluster.devices[device].kind][op])
        for op, device in enumerate(device_of)
    ]
    if len(set(device_of)) == 1:
        kinds = graph.meta.get("costs", {}).get("kinds", {})
        factor = kinds.get(cluster.devices[device_of[0]].kind, {}).get("alone", 1.0)
        seconds = [factor * each for each in seconds]
    sizes = graph.tensor_bytes.tolist()
    outputs: dict[int, list[int]] = {op: [] for op in range(graph.num_ops)}
    for tensor, producer in enumerate(graph.tensor_producer.tolist()):
        outputs[producer].append(tensor)
    consumers: dict[int, list[int]] = {tensor: [] for tensor in range(graph.num_tensors)}
    absent: dict[int, set[int]] = {op: set() for op in range(graph.num_ops)}
    for tensor, op in zip(graph.edge_tensor.tolist(), graph.edge_consumer.tolist(), strict=True):
        consumers[tensor].append(op)
        absent[op].add(tensor)
    for before, op in held_back:
        absent[op].add(~before)

    start: dict[int, float] = {}
    finish: dict[int, float] = {}
    transfers: set[ReferenceTransfer] = set()
    ready: dict[int, list[tuple[float, float, int]]] = {d: [] for d in range(cluster.num_devices)}
    device_free = dict.fromkeys(ready, 0.0)
    device_sends = dict.fromkeys(ready, 0.0)  # or receives, until then
    running: dict[int, int] = {}
    # Of links by number: parts of transfers that wait, and from when it is free.
    waiting: dict[int, list[tuple[float, int, int, int, Chain]]] = {}
    link_free: dict[int, float] = {}
    arrivals: list[tuple[float, int, frozenset[int]]] = []
    coming: list[tuple[float, int, int, Chain]] = []  # parts that will be queued
    alarms: list[float] = [0.0]  # instants at which a device or a link may become free
    count = itertools.count()

    def present(tensor: int, device: int, now: float) -> None:
        for op in consumers[tensor]:
            if device_of[op] == device:
                arrived(tensor, op, now)

    def arrived(tensor: int, op: int, now: float) -> None:
        absent[op].remove(tensor)
        if not absent[op]:
            heapq.heappush(ready[device_of[op]], (rank[op], now, op))

    def queue(chain: Chain, since: float) -> None:
        where, number = chain.parts[chain.at].resource
        if where == "link":
            key = (since, chain.lowest, chain.tensor, chain.number, chain)
            heapq.heappush(waiting.setdefault(number, []), key)
            return
        # A device takes it up at once, or after other parts; its op has to wait meanwhile.
        part = chain.parts[chain.at]
        now = max(since, device_sends[number])
        device_sends[number] = now + part.seconds
        if number in running:
            finish[running[number]] += part.seconds
        if device_free[number] > since:
            device_free[number] += part.seconds
        else:
            device_free[number] = now + part.seconds
        begin(chain, now)

    def begin(chain: Chain, now: float) -> float:
        """Starts the part whose turn it is; when its resource is free again."""
        part = chain.parts[chain.at]
        left = now + part.seconds
        if chain.at == 0:
            chain.start = now
        chain.kept.append((*part.resource, now, left))
        chain.sent = max(left, chain.done)
        chain.done = chain.sent + part.latency
        chain.at += 1
        if chain.at < len(chain.parts):
            heapq.heappush(coming, (now + part.latency, chain.number, 0, chain))
        else:
            heapq.heappush(arrivals, (chain.done, chain.tensor, chain.bound))
            transfers.add(
                ReferenceTransfer(
                    chain.tensor, chain.channel, chain.bound, chain.request, chain.start,
                    chain.sent, chain.done, tuple(chain.kept),
                )
            )  # fmt: skip
        free = left + part.overhead
        if free > now:
            heapq.heappush(alarms, free)
        return free

    for op in range(graph.num_ops):
        if not absent[op]:
            heapq.heappush(ready[device_of[op]], (rank[op], 0.0, op))
    now = 0.0

    while running or arrivals or coming or alarms or any(ready.values()):
        ends = [finish[op] for op in running.values()]
        free = [instant for instant in device_free.values() if instant > now]
        now = min([*alarms[:1], *ends, *free, *(some[0] for some in (*arrivals[:1], *coming[:1]))])
        while alarms and alarms[0] == now:
            heapq.heappop(alarms)
        while True:
            for here in sorted(device for device, op in running.items() if finish[op] == now):
                op = running.pop(here)
                for before, held in held_back:
                    if before == op:
                        arrived(~op, held, now)
                for tensor in outputs[op]:
                    present(tensor, here, now)
                    elsewhere = {device_of[c] for c in consumers[tensor]} - {here}
                    requests = [
                        (min(c for c in consumers[tensor] if device_of[c] in bound), channel, bound)
                        for channel, bound in bundles(cluster, here, elsewhere)
                    ]
                    for lowest, channel, bound in sorted(requests, key=lambda each: each[0]):
                        parts = parts_of(cluster, channel, here, bound, sizes[tensor])
                        queue(Chain(tensor, channel, bound, lowest, now, parts, next(count)), now)
            while arrivals and arrivals[0][0] == now:
                _, tensor, bound = heapq.heappop(arrivals)
                for device in bound:
                    present(tensor, device, now)
            while coming and coming[0][0] == now:
                queue(heapq.heappop(coming)[-1], now)
            links = sorted(
                link for link, some in waiting.items() if some and link_free.get(link, 0.0) <= now
            )
            if links:
                link_free[links[0]] = begin(heapq.heappop(waiting[links[0]])[-1], now)
            if links or (arrivals and arrivals[0][0] == now) or (coming and coming[0][0] == now):
                continue
            idle = [d for d in ready if ready[d] and d not in running and device_free[d] <= now]
            if not idle:
                break
            device = min(idle)
            _, _, op = heapq.heappop(ready[device])
            start[op], finish[op] = now, now + seconds[op]
            device_free[device] = finish[op]
            if seconds[op] > 0:
                device_free[device] += cluster.devices[device].launch_overhead_seconds
            running[device] = op

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


@dataclass(frozen=True)
class Part:
    """What a transfer is on one resource."""

    resource: tuple[str, int]
    seconds: float
    latency: float = 0.0
    overhead: float = 0.0


@dataclass
class Chain:
    """A transfer on its way: the parts before `at` have started."""

    tensor: int
    channel: int
    bound: frozenset[int]
    lowest: int
    request: float
    parts: list[Part]
    number: int
    kept: list[tuple[str, int, float, float]] = field(default_factory=list)
    at: int = 0
    start: float = 0.0
    sent: float = 0.0
    done: float = 0.0


def parts_of(
    cluster: Cluster, number: int, source: int, bound: frozenset[int], size: int
) -> list[Part]:
    """Send, the links, receive; an end that costs nothing is left out."""
    channel = cluster.channels[number]
    send = end_seconds(channel.send, size)
    parts = [Part(("device", source), send)] if send else []
    for name in channel.path:
        index, link = next((i, k) for i, k in enumerate(cluster.links) if k.name == name)
        resource = ("link", len(cluster.channels) + index)
        parts.append(Part(resource, size / link.bandwidth, link.latency_seconds))
    if not channel.path:
        took = size / channel.bandwidth
        parts.append(
            Part(("link", number), took, channel.latency_seconds, channel.overhead_seconds)
        )
    receive = end_seconds(channel.receive, size)
    return [*parts, Part(("device", min(bound)), receive)] if receive else parts


def end_seconds(costs: tuple[EndCost, ...], size: int) -> float:
    """What a transfer costs an end: by the last piece that is of its size."""
    found = 0.0
    for cost in costs:
        if size >= cost.from_bytes:
            found = cost.seconds + cost.seconds_per_byte * size
    return found


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
