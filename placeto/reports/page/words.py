"""What a report says in sentences: texts and numbers with units, not yet HTML."""

import platform
from typing import Any

import numpy as np

from placeto.reports.page.report import Report
from placeto.reports.rows import kept_row
from placeto.support.units import format_bytes, format_seconds

MOST_ROWS = 40
MOST_LETTERS = 100


def shortened(name: str) -> str:
    """A name that is not longer than `MOST_LETTERS`: its middle gives way."""
    if len(name) <= MOST_LETTERS:
        return name
    half = MOST_LETTERS // 2
    return f"{name[:half]}…{name[-half + 1 :]}"


def verdict(report: Report) -> list[str]:
    """What to know first, in a few sentences."""
    placement, single, best = report.placement, report.base.single, report.ranked[0]
    if not placement.feasible:
        unproven = "That none fits is not proven; more search may find one."
        rest = report.base.why_nothing_fits(placement) or unproven
        if best.feasible:
            rest = f"What {best.method} finds does, and takes {format_seconds(best.step_time)}."
        return ["This placement does not fit in memory.", rest]
    step, bound = placement.step_time, report.lower_bound
    rest = (
        f"At most {1 - bound / step:.1%} of it could be saved by another placement: "
        f"none that fits is below {format_seconds(bound)}."
    )
    if 1 - bound / step < 1e-6:
        rest = "It is optimal: no placement that fits is faster."
    devices = placement.problem.cluster.devices
    used = np.unique(placement.devices)
    if best.step_time < step:
        found = f"{best.method} found a faster one, {format_seconds(best.step_time)}"
        rest = f"By simulation {found}. {rest}"
    elif len(used) == 1 < len(devices) and placement.method != "single":
        rest = f"Nothing that was tried is faster than everything on it. {rest}"
        takes = f"{devices[used[0]].name} takes {format_seconds(step)} a step"
        return [f"One device is enough: {takes}.", rest]
    first = f"A step takes {format_seconds(step)} on {len(used)} of {len(devices)} devices"
    if not single.feasible:
        return [f"{first}; no single device has the memory for it.", rest]
    times = f"{single.step_time / step:.2f} times as fast as on the best single device"
    return [f"{first}, {times}.", rest]


def sensitivity_sentence(report: Report) -> str:
    """Whether another placer's placement would be faster if costs were a quarter off."""
    believed = report.outcomes[0]
    if not report.others.placements:
        return "No other placer was run, so that there is nothing to compare with."
    if not report.placement.feasible:
        return "This placement does not fit in memory, whatever ops and transfers take."
    if not believed.stands:
        why = "choose that one, or search for longer"
        if kept_row(report.context.measured) is not None:
            why = "it was kept as the fastest of those that were run on real devices"
        faster = f"{believed.other} is faster, by {believed.margin:.1%}"
        return f"Even with the costs as believed, {faster}; {why}."
    lost = [outcome for outcome in report.outcomes if not outcome.stands]
    if not lost:
        return (
            "The choice stands: if bandwidth or op times are 25% off, no other placement is faster."
        )
    worst = max(lost, key=lambda outcome: outcome.margin)
    loss = f"is slower than what {worst.other} finds, by {worst.margin:.1%}"
    if np.isinf(worst.step_time):
        loss = f"does not fit in memory, where what {worst.other} finds does"
    return (
        f"The choice depends on the costs: with {worst.case.name}, it {loss}. "
        "Calibrate before relying on it."
    )


def left_out(report: Report) -> list[str]:
    """Which placers are not in the table, and why: those for one reason together."""
    reasons: dict[str, list[str]] = {}
    for method, reason in report.others.left_out.items():
        reasons.setdefault(reason, []).append(method)
    return [f"{', '.join(methods)}: {reason}" for reason, methods in reasons.items()]


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
            "seconds": seconds[group],
            "memory": problem.group_memory[group],
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
        f"{each.name} ({each.kind}, {format_bytes(each.memory_bytes)})" for each in cluster.devices
    )
    channels = ", ".join(
        f"{each.name} ({format_bytes(each.bandwidth)}/s)" for each in cluster.channels
    )
    settings = ", ".join(f"{name}={value}" for name, value in placement.settings.items())
    sizes = (
        f"{graph.num_ops:,} ops, {graph.num_tensors:,} tensors, "
        f"{format_bytes(graph.param_bytes.sum())} of parameters"
    )
    versions = f"placeto {placeto.__version__}, Python {platform.python_version()}"
    return [
        ("Command", context.command),
        ("Graph", f"{graph.name}: {sizes}"),
        ("Source of the graph", str(graph.meta.get("source") or "–")),
        ("Groups", f"{problem.num_groups:,}, grouping {context.grouping}"),
        ("Pinned groups", str(len(problem.pins))),
        ("Cluster", f"{cluster.name}: {devices}"),
        ("Channels", channels or "–"),
        ("Source of the cluster", " ".join(cluster.source.split()) or "–"),
        ("Placer", f"{placement.method}{f' ({settings})' if settings else ''}"),
        ("Seed", str(placement.seed)),
        ("Interrupted", "yes" if placement.interrupted else "no"),
        ("Versions", f"{versions}, NumPy {np.__version__}"),
        ("Date", context.date or "–"),
    ]
