"""Reports as HTML: a template that gets what is said and drawn, and escapes every name."""

import math
from pathlib import Path

from placeto.reports.page import figures, words
from placeto.reports.page.report import Report
from placeto.reports.rows import fullest, kept_row, placement_row
from placeto.reports.tables import format_peak, format_ratio, format_share, format_time
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
        "ratio": format_ratio,
        "seconds": format_seconds,
        "share": format_share,
        "time": format_time,
    }
    placement, context = report.placement, report.context
    return environment.get_template("page.html").render(
        report=report,
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "script.js").read_text(encoding="utf-8"),
        verdict=words.verdict(report),
        kept=kept_row(context.measured),
        fullest=fullest(placement.peak_memory, placement.problem.memory_limit),
        rows=[
            {**placement_row(each, report.base, context.grouping), "chosen": each is placement}
            for each in report.ranked
        ],
        left_out=words.left_out(report),
        timeline=figures.timeline_figure(report),
        time=figures.time_figure(report),
        memory=figures.memory_figure(report),
        groups=figures.groups_figure(report),
        group_rows=words.group_rows(report),
        search=figures.search_figure(report),
        sensitivity=words.sensitivity_sentence(report),
        run=words.run_pairs(report),
        hover=figures.hover(report),
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
