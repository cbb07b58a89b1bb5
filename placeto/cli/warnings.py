"""What `placeto place` warns of on stderr."""

from placeto.cli.output import note
from placeto.placement import Placement
from placeto.reports.rows import Baseline, device_rows
from placeto.reports.uncertainty import knows_ends, loses_if_a_tenth_off, may_cost_ends
from placeto.support.units import format_seconds


def warn_unless_feasible(placement: Placement) -> None:
    """Says on stderr which device has too little memory for a placement."""
    for row in device_rows(placement):
        if row["peak_memory"] > row["memory_limit"]:
            note(
                f"warning: out of memory on {row['device']}: peak {row['peak_memory']} of "
                f"{row['memory_limit']} bytes"
            )


def warn_unless_sure(placement: Placement, base: Baseline) -> None:
    """Says on stderr if a placement loses to one device where transfers cost a tenth more."""
    step_time = loses_if_a_tenth_off(placement, base.single)
    if step_time is None:
        return
    cluster = placement.problem.cluster
    costs = "bandwidth"
    if knows_ends(cluster):
        costs += " and ends"
    elif may_cost_ends(cluster):
        costs += ", and ends kept for a tenth of each"
    single = cluster.devices[base.single_device].name
    note(
        f"warning: where transfers cost a tenth more ({costs}), a step takes "
        f"{format_seconds(step_time)}, and {format_seconds(base.single.step_time)} on {single} "
        "alone; calibrate before relying on it"
    )
