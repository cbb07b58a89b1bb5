"""A problem with other costs: bandwidths, latencies, ends of transfers, op times."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from placeto.cluster import Channel, EndCost
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats


def scaled_problem(
    problem: PlacementProblem,
    *,
    bandwidth: float = 1.0,
    latency: float = 1.0,
    ends: float = 1.0,
    op_seconds: float | Mapping[str, Floats] = 1.0,
) -> PlacementProblem:
    """The same groups, pins, order and objective, with costs times a factor.

    Args:
        problem: with the costs as believed.
        bandwidth: factor of every channel's and link's.
        latency: factor of every latency and of what holds a channel after a transfer.
        ends: factor of what transfers cost the devices at their ends. A channel that does not say
            what they do keeps either device for `ends` - 1 of what a transfer takes, if that is
            more than nothing; a multicast channel neither.
        op_seconds: factor of every op's time, or device kind -> (num_ops,) factors.
    """
    graph, cluster = problem.graph, problem.cluster
    columns = {
        kind: graph.op_seconds[kind]
        * (op_seconds[kind] if isinstance(op_seconds, Mapping) else op_seconds)
        for kind in cluster.kinds
    }
    channels = [_scaled(channel, bandwidth, latency, ends) for channel in cluster.channels]
    links = [
        replace(
            link,
            bandwidth=bandwidth * link.bandwidth,
            latency_seconds=latency * link.latency_seconds,
        )
        for link in cluster.links
    ]
    return PlacementProblem(
        replace(graph, op_seconds=columns),
        replace(cluster, channels=tuple(channels), links=tuple(links)),
        problem.op_group,
        pins=problem.pins,
        order=problem.order,
        objective=problem.objective,
    )


def _scaled(channel: Channel, bandwidth: float, latency: float, ends: float) -> Channel:
    send, receive = _times(channel.send, ends), _times(channel.receive, ends)
    if not (channel.send or channel.receive or channel.multicast) and ends > 1:
        seconds = channel.latency_seconds + channel.overhead_seconds
        send = receive = (EndCost(0, (ends - 1) * seconds, (ends - 1) / channel.bandwidth),)
    if channel.path:  # whose links say the rest
        return replace(channel, bandwidth=0.0, latency_seconds=0.0, send=send, receive=receive)
    return replace(
        channel,
        bandwidth=bandwidth * channel.bandwidth,
        latency_seconds=latency * channel.latency_seconds,
        overhead_seconds=latency * channel.overhead_seconds,
        send=send,
        receive=receive,
    )


def _times(costs: Sequence[EndCost], factor: float) -> tuple[EndCost, ...]:
    return tuple(
        replace(
            cost,
            seconds=factor * cost.seconds,
            seconds_per_byte=factor * cost.seconds_per_byte,
        )
        for cost in costs
    )
