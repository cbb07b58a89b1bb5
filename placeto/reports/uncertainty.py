"""Costs that may be the real ones: a problem with other bandwidths, ends of transfers, op times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placeto.cluster import Channel, Cluster, EndCost
from placeto.placement import Placement
from placeto.problem import PlacementProblem
from placeto.simulation import simulate

QUARTER, TENTH = 0.25, 0.1


@dataclass(frozen=True)
class Case:
    """Costs that may be the real ones, as factors of the believed ones; see `scaled_problem`."""

    name: str
    bandwidth: float = 1.0
    ends: float = 1.0
    op_seconds: float = 1.0


def cases(cluster: Cluster) -> tuple[Case, ...]:
    """The costs as believed, and each a quarter lower and a quarter higher.

    Where no channel says what its transfers cost the devices at their ends, lower is nothing. Where
    every channel is multicast they cost nothing whatever is believed, and are left out.
    """
    less, more = 1 - QUARTER, 1 + QUARTER
    ends: tuple[Case, ...] = ()
    if knows_ends(cluster):
        ends = (Case("ends' costs −25%", ends=less), Case("ends' costs +25%", ends=more))
    elif may_cost_ends(cluster):
        ends = (Case("ends kept for 25% of a transfer", ends=more),)
    return (
        Case("as believed"),
        Case("bandwidth −25%", bandwidth=less),
        Case("bandwidth +25%", bandwidth=more),
        *ends,
        Case("op times −25%", op_seconds=less),
        Case("op times +25%", op_seconds=more),
    )


def knows_ends(cluster: Cluster) -> bool:
    """Whether a channel says what its transfers cost the devices at their ends."""
    return any(channel.send or channel.receive for channel in cluster.channels)


def may_cost_ends(cluster: Cluster) -> bool:
    """Whether transfers of a channel may cost the devices at their ends something."""
    return not all(channel.multicast for channel in cluster.channels)


def scaled_problem(
    problem: PlacementProblem,
    *,
    bandwidth: float = 1.0,
    ends: float = 1.0,
    op_seconds: float = 1.0,
) -> PlacementProblem:
    """The same groups, pins and order, with costs times a factor.

    Latencies and overheads stay as they are.

    Args:
        problem: with the costs as believed.
        bandwidth: factor of every channel's and link's.
        ends: factor of what transfers cost the devices at their ends. A channel that does not say
            what they do keeps either device for `ends` - 1 of what a transfer takes, if that is
            more than nothing; a multicast channel neither.
        op_seconds: factor of every op's time.
    """
    graph, cluster = problem.graph, problem.cluster
    columns = {kind: op_seconds * graph.op_seconds[kind] for kind in cluster.kinds}
    channels = [_scaled(channel, bandwidth, ends) for channel in cluster.channels]
    links = [replace(link, bandwidth=bandwidth * link.bandwidth) for link in cluster.links]
    return PlacementProblem(
        replace(graph, op_seconds=columns),
        replace(cluster, channels=tuple(channels), links=tuple(links)),
        problem.op_group,
        pins=problem.pins,
        order=problem.order,
    )


def _scaled(channel: Channel, bandwidth: float, ends: float) -> Channel:
    send, receive = _times(channel.send, ends), _times(channel.receive, ends)
    if not (channel.send or channel.receive or channel.multicast) and ends > 1:
        seconds = channel.latency_seconds + channel.overhead_seconds
        send = receive = (EndCost(0, (ends - 1) * seconds, (ends - 1) / channel.bandwidth),)
    if channel.path:  # whose links say the rest
        return replace(channel, bandwidth=0.0, latency_seconds=0.0, send=send, receive=receive)
    return replace(channel, bandwidth=bandwidth * channel.bandwidth, send=send, receive=receive)


def _times(costs: Sequence[EndCost], factor: float) -> tuple[EndCost, ...]:
    return tuple(
        replace(
            cost,
            seconds=factor * cost.seconds,
            seconds_per_byte=factor * cost.seconds_per_byte,
        )
        for cost in costs
    )


def loses_if_a_tenth_off(placement: Placement, single: Placement) -> float | None:
    """A step's seconds with a tenth less bandwidth and a tenth more for the ends of transfers.

    Returns:
        None unless the placement is faster than the single device with the costs as believed, and
        is not with those.
    """
    wins = placement.step_time < single.step_time and placement.feasible and single.feasible
    if not wins:
        return None
    costly = scaled_problem(placement.problem, bandwidth=1 - TENTH, ends=1 + TENTH)
    schedule = simulate(costly, placement.devices)
    single_seconds = simulate(costly, single.devices).step_time
    return schedule.step_time if schedule.step_time >= single_seconds else None
