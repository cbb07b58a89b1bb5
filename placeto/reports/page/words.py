"""What a report says in words and tables: texts and numbers with units, not yet HTML."""

import platform
from typing import Any

import numpy as np

from placeto.reports.page.report import Report
from placeto.reports.rows import CandidateRow, PlacementRow
from placeto.reports.tables import format_peak, format_ratio, format_share, format_time
from placeto.support.arrays import Ints
from placeto.support.units import format_bytes, format_seconds

MOST_ROWS = 40
MOST_LETTERS = 100


def shortened(name: str) -> str:
    """A name that is not longer than `MOST_LETTERS`: its middle gives way."""
    if len(name) <= MOST_LETTERS:
        return name
    half = MOST_LETTERS // 2
    return f"{name[:half]}…{name[-half + 1 :]}"


def fullest(peak: Ints, limit: Ints) -> int:
    """The device nearest to its limit; a limit of 0 bytes counts as 1."""
    return int(np.argmax(peak / np.maximum(limit, 1)))


def verdict(report: Report) -> list[str]:
    """What to know first, in a few sentences."""
    placement, single, better = report.placement, report.base.single, report.rows[0]
    step = format_seconds(placement.step_time)
    if not placement.feasible:
        why = report.infeasibility
        if better["feasible"]:
            why = (
                f"What {better['method']} finds does, and takes {format_time(better['step_time'])}."
            )
        return [
            "This placement does not fit in memory.",
            why if why is not None else "That none fits is not proven; more search may find one.",
        ]
    bound = report.lower_bound
    left = 1 - bound / placement.step_time
    rest = (
        "It is optimal: no placement that fits is faster."
        if left < 1e-6
        else f"At most {left:.1%} of it could be saved by another placement: "
        f"none that fits is below {format_seconds(bound)}."
    )
    faster = better["step_time"]
    if not better["chosen"] and faster is not None and faster < placement.step_time:
        found = (
            "found a faster one" if _kept(report) is None else "found a faster one by simulation"
        )
        rest = f"{better['method']} {found}, {format_time(faster)}. {rest}"
    elif report.one_device is not None and placement.method != "single":
        tried = "Nothing that was tried is faster than everything on it."
        return [f"One device is enough: {report.one_device} takes {step} a step.", tried, rest]
    used, count = len(np.unique(placement.devices)), placement.problem.num_devices
    several = f"A step takes {step} on {used} of {count} devices"
    if count == 1:
        return [f"A step takes {step}.", rest]
    if not single.feasible:
        return [f"{several}; no single device has the memory for it.", rest]
    faster = single.step_time / placement.step_time
    return [f"{several}, {faster:.2f} times as fast as on the best single device.", rest]


def _kept(report: Report) -> CandidateRow | None:
    """The row of the placement that was kept, as it was the fastest when run; None if none ran."""
    return next((row for row in report.context.measured if row["kept"]), None)


def tiles(report: Report) -> list[dict[str, str]]:
    """The key figures: a name, a value and what it is measured by."""
    placement, single = report.placement, report.base.single
    problem = placement.problem
    kept = _kept(report)
    faster = single.step_time / placement.step_time
    alone = problem.cluster.devices[np.bincount(single.devices).argmax()].name
    # Where it cannot run all ops, or some are pinned elsewhere, the others are on other devices.
    alone += ", as far as it can" if len(np.unique(single.devices)) > 1 else ""
    memory = " if it had the memory" if not single.feasible else ""
    device = fullest(placement.peak_memory, problem.memory_limit)
    peak, limit = placement.peak_memory[device], problem.memory_limit[device]
    gap = report.gap
    return [
        {
            "name": "Step time",
            "value": format_seconds(placement.step_time),
            "note": f"simulated; {format_time(kept['step_time'])} measured"
            if kept
            else "simulated",
        },
        {
            "name": "Over one device",
            "value": f"{faster:.2f}×",
            "note": f"{format_seconds(single.step_time)} on {alone}{memory}",
        },
        {
            "name": "Gap to the bound",
            "value": "–" if gap is None else f"≤ {_above(gap)}",
            "note": "none fits"
            if np.isinf(report.lower_bound)
            else f"no placement that fits is below {format_seconds(report.lower_bound)}",
        },
        {
            "name": "Memory" if placement.feasible else "Out of memory",
            "value": f"{peak / max(limit, 1):.0%}",
            "note": f"{format_bytes(peak)} of {format_bytes(limit)} on "
            f"{problem.cluster.devices[device].name}, the fullest",
        },
        {
            "name": "Found by",
            "value": placement.found_by,
            "note": f"in {format_seconds(placement.wall_seconds)}, "
            f"{placement.evaluations:,} placements simulated",
        },
    ]


def left_out(report: Report) -> list[str]:
    """Which placers are not in the table, and why: those for one reason together."""
    reasons: dict[str, list[str]] = {}
    for method, reason in report.others.left_out.items():
        reasons.setdefault(reason, []).append(method)
    return [f"{', '.join(methods)}: {reason}" for reason, methods in reasons.items()]


def placers(report: Report) -> dict[str, Any]:
    """The table of placers, the fastest first; `bar` and `bound` are shares of the longest step."""
    rows = report.rows
    longest = max(row["step_time"] or 0.0 for row in rows)
    bound = report.lower_bound / longest
    return {
        "bound": bound if bound <= 1 else None,
        "rows": [_placer_row(row, longest) for row in rows],
    }


def _placer_row(row: PlacementRow, longest: float) -> dict[str, Any]:
    return {
        "name": row["method"],
        "part": row["found_by"] if row["found_by"] != row["method"] else "",
        "chosen": row["chosen"],
        "feasible": row["feasible"],
        "step_time": format_time(row["step_time"]),
        "bar": (row["step_time"] or 0.0) / longest,
        "ratio": format_ratio(row["ratio"]),
        "gap": "–" if row["gap"] is None else _above(row["gap"]),
        "memory": format_peak(row["peak_memory"], row["memory_limit"]),
        "fits": _fits(row),
        "devices": len(set(row["placement"])),
        "seconds": format_seconds(row["wall_seconds"]),
    }


def _above(ratio: float) -> str:
    """How much a step time is above its bound; adding up in another order may put it below."""
    return f"{max(ratio - 1, 0.0):.1%}"


def _fits(row: PlacementRow) -> str:
    if row["feasible"]:
        return "yes"
    return "no" if row["step_time"] is not None else "cannot run"


def measured_rows(report: Report) -> list[dict[str, Any]]:
    """Placements that were run for real."""
    return [
        {
            "name": row["method"],
            "kept": row["kept"],
            "simulated": format_time(row["simulated_step_time"]),
            "measured": format_time(row["step_time"]),
            "between": " to ".join(format_time(end) for end in row["interval"])
            if row["feasible"]
            else row["reason"],
        }
        for row in report.context.measured
    ]


def outcome_rows(report: Report) -> list[dict[str, Any]]:
    """The choice under other costs: who is the fastest, and by how much."""
    rows = []
    nobody = "none fits" if report.others.placements else "–"
    for outcome in report.outcomes:
        fits = np.isfinite(outcome.step_time)
        winner = "this placement" if fits and outcome.stands else outcome.other
        rows.append(
            {
                "case": outcome.case.name,
                "step_time": format_seconds(outcome.step_time) if fits else "does not fit",
                "other": outcome.other or nobody,
                "other_step_time": format_seconds(outcome.other_step_time),
                "stands": outcome.stands,
                "winner": winner or nobody,
                "margin": _share(outcome.margin) if outcome.other is not None else "–",
                "loss": "–" if outcome.stands else _share(outcome.margin),
            }
        )
    return rows


def sensitivity_sentence(report: Report) -> str:
    """Whether another placer's placement would be faster if costs were a quarter off."""
    if not report.others.placements:
        return "No other placer was run, so that there is nothing to compare with."
    lost = [outcome for outcome in report.outcomes if not outcome.stands]
    again = any(outcome.again for outcome in report.outcomes)
    believed = report.outcomes[0]
    if not report.placement.feasible:
        if believed.other is None:
            return (
                "With the costs as believed, neither this placement nor any other in the table "
                "fits in memory."
            )
        return (
            f"This placement does not fit in memory, and what {believed.other} finds does: choose "
            "that one, or search for longer."
        )
    if not believed.stands:
        faster = (
            f"Even with the costs as believed, {believed.other} is faster, and this placement "
            f"loses {_share(believed.margin)} to it"
        )
        if _kept(report) is not None:
            return f"{faster}; it was kept as the fastest of those that were run on real devices."
        return f"{faster}: choose that one, or search for longer."
    unfit = [outcome for outcome in report.outcomes if not np.isfinite(outcome.step_time)]
    if unfit and not lost:
        return (
            f"The choice depends on the costs: with {unfit[0].case.name}, neither it nor any other "
            "in the table would fit in memory."
        )
    if not lost:
        return (
            "The choice stands: if bandwidth or op times are 25% off, no other placement in the "
            "table is faster"
            + (", nor any that the quickest placers find under those costs." if again else ".")
        )
    worst = max(lost, key=lambda outcome: outcome.margin)
    if not np.isfinite(worst.step_time):
        return (
            f"The choice depends on the costs: with {worst.case.name}, it would no longer fit in "
            f"memory, where what {worst.other} finds does."
        )
    return (
        f"The choice depends on the costs: with {worst.case.name}, {worst.other} would be faster, "
        f"and this placement loses {_share(worst.margin)} to it. Calibrate before relying on it."
    )


def _share(margin: float) -> str:
    return "–" if np.isinf(margin) else format_share(margin)


def no_search(report: Report) -> str:
    """Why there is no curve of placements that fit."""
    placement = report.placement
    if placement.feasible:
        return (
            f"There is no curve: {placement.evaluations:,} placements were simulated, all at once, "
            "or none after the first of them was faster."
        )
    return (
        "No placement that fits in memory was found: "
        f"{placement.evaluations:,} were simulated in {format_seconds(placement.wall_seconds)}."
    )


def group_rows(report: Report) -> list[dict[str, Any]]:
    """The groups that work the longest."""
    placement = report.placement
    problem = placement.problem
    seconds = problem.group_seconds[np.arange(problem.num_groups), placement.devices]
    ops = np.bincount(problem.op_group)
    return [
        {
            "group": group,
            "name": shortened(problem.group_names[group]),
            "device": problem.cluster.devices[placement.devices[group]].name,
            "colour": int(placement.devices[group]),
            "ops": int(ops[group]),
            "seconds": format_seconds(seconds[group]),
            "memory": format_bytes(problem.group_memory[group]),
        }
        for group in np.argsort(-seconds, kind="stable")[:MOST_ROWS].tolist()
    ]


def run_pairs(report: Report) -> list[tuple[str, str]]:
    """What was run, so that it can be run again."""
    import placeto

    placement, context = report.placement, report.context
    problem = placement.problem
    graph, cluster = problem.graph, problem.cluster
    devices = ", ".join(
        f"{device.name} ({device.kind}, {format_bytes(device.memory_bytes)})"
        for device in cluster.devices
    )
    channels = ", ".join(
        f"{channel.name} ({format_bytes(channel.bandwidth)}/s)" for channel in cluster.channels
    )
    settings = ", ".join(f"{name}={value}" for name, value in placement.settings.items())
    return [
        ("Command", context.command),
        (
            "Graph",
            f"{graph.name}: {graph.num_ops:,} ops, {graph.num_tensors:,} tensors, "
            f"{format_bytes(graph.param_bytes.sum())} of parameters",
        ),
        ("Source of the graph", str(graph.meta.get("source") or "–")),
        ("Groups", f"{problem.num_groups:,}, grouping {context.grouping}"),
        ("Pinned groups", str(len(problem.pins))),
        ("Cluster", f"{cluster.name}: {devices}"),
        ("Channels", channels or "–"),
        ("Source of the cluster", " ".join(cluster.source.split()) or "–"),
        ("Placer", f"{placement.method}{f' ({settings})' if settings else ''}"),
        ("Seed", str(placement.seed)),
        ("Interrupted", "yes" if placement.interrupted else "no"),
        (
            "Versions",
            f"placeto {placeto.__version__}, Python {platform.python_version()}, "
            f"NumPy {np.__version__}",
        ),
        ("Date", context.date or "–"),
    ]
