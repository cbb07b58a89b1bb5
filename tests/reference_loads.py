"""Loads of resources as docs/simulator.md has them: plain Python, one tensor after the other."""

from collections import defaultdict

from placeto import PlacementProblem
from placeto.cluster import end_seconds
from tests.reference import bundles


def reference_loads(problem: PlacementProblem, devices: list[int]) -> dict[tuple[str, str], float]:
    """Seconds a microbatch that each ("device", "channel" or "link", its name) is kept for."""
    graph, cluster = problem.graph, problem.cluster
    where = [devices[group] for group in problem.op_group.tolist()]
    loads: dict[tuple[str, str], float] = defaultdict(float)
    for op, number in enumerate(where):
        device = cluster.devices[number]
        seconds = float(graph.op_seconds[device.kind][op])
        if len(set(devices)) == 1:
            kinds = graph.meta.get("costs", {}).get("kinds", {})
            seconds *= kinds.get(device.kind, {}).get("alone", 1.0)
        loads["device", device.name] += seconds
        if seconds > 0:
            loads["device", device.name] += device.launch_overhead_seconds
    edges = list(zip(graph.edge_tensor.tolist(), graph.edge_consumer.tolist(), strict=True))
    for tensor, producer in enumerate(graph.tensor_producer.tolist()):
        source, size = where[producer], int(graph.tensor_bytes[tensor])
        targets = {where[consumer] for other, consumer in edges if other == tensor} - {source}
        for number, bound in bundles(cluster, source, targets):
            channel = cluster.channels[number]
            loads["device", cluster.devices[source].name] += end_seconds(channel.send, size)
            for target in bound if channel.receive else ():
                cost = end_seconds(channel.receive, size)
                loads["device", cluster.devices[target].name] += cost
            if not channel.path:
                carried = size / channel.bandwidth + channel.overhead_seconds
                loads["channel", channel.name] += carried
            for name in channel.path:
                link = next(link for link in cluster.links if link.name == name)
                loads["link", name] += size / link.bandwidth
    return {key: load / graph.num_microbatches for key, load in loads.items()}
