"""Reports as HTML: a template that gets figures and sentences, and escapes every name."""

import math
import platform
from pathlib import Path

import numpy as np

import placeto
from placeto.reports.page import figures
from placeto.reports.page.pipeline import pipeline_figure
from placeto.reports.page.report import Report
from placeto.reports.page.shapes import UNITS, shortened, time_ticks
from placeto.reports.rows import fullest, kept_row, placement_row
from placeto.reports.tables import (
    format_peak,
    format_rate,
    format_ratio,
    format_share,
    format_time,
)
from placeto.support.files import replacing
from placeto.support.units import format_bytes, format_seconds

TEMPLATES = Path(__file__).parent / "templates"


def render(report: Report) -> str:
    """The page: styles, figures and a little script inside, no other file."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "above": lambda ratio: f"{max(ratio - 1, 0.0):.1%}",  # a sum in another order may be below
        "bytes": format_bytes,
        "isfinite": math.isfinite,
        "peak": format_peak,
        "rate": format_rate,
        "ratio": format_ratio,
        "seconds": format_seconds,
        "share": format_share,
        "shortened": shortened,
        "time": format_time,
    }
    placement, context = report.placement, report.context
    pipeline = pipeline_figure(report)
    hover = figures.hover(report)
    if pipeline is not None:
        hover["block"] = [lane["hover"] for lane in pipeline["lanes"]]
    return environment.get_template("page.html").render(
        report=report,
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "script.js").read_text(encoding="utf-8"),
        verdict=verdict(report),
        kept=kept_row(context.measured),
        fullest=fullest(placement.peak_memory, placement.problem.memory_limit),
        rows=[
            {**placement_row(each, report.base, context.grouping), "chosen": each is placement}
            for each in report.ranked
        ],
        left_out=left_out(report),
        step=report.schedule.step_time,
        units=UNITS,
        ticks=time_ticks(report.schedule.step_time),
        colours=figures.COLOURS,
        timeline=figures.timeline_figure(report),
        pipeline=pipeline,
        time=figures.time_figure(report),
        memory=figures.memory_figure(report),
        groups=figures.groups_figure(report),
        search=figures.search_figure(report),
        sensitivity=sensitivity_sentence(report),
        versions=f"placeto {placeto.__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}",
        hover=hover,
    )


def save_report(report: Report, path: str | Path) -> None:
    """Writes the page, whole or not at all.

    Raises:
        PlacetoError: it cannot be written.
    """
    text = render(report)
    with replacing(Path(path)) as temporary:
        # A file name that is not UTF-8 has characters that cannot be written as they are.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


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
        ends = any(outcome.case.ends != 1 for outcome in report.outcomes)
        costs = "bandwidth, the ends of transfers, or" if ends else "bandwidth or"
        return f"The choice stands: if {costs} op times are 25% off, no other placement is faster."
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
