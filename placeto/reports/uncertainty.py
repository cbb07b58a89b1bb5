"""Costs that may be the real ones, and what becomes of a placement there."""

from dataclasses import dataclass

from placeto.cluster import Cluster
from placeto.placement import Placement
from placeto.simulation import simulate
from placeto.simulation.scaled import scaled_problem

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
