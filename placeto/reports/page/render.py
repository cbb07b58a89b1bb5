"""Reports as HTML: a template that gets what is said and drawn, and escapes every name."""

import math
from pathlib import Path

from placeto.reports.page.figures import (
    groups_figure,
    memory_figure,
    search_figure,
    time_figure,
    timeline_figure,
)
from placeto.reports.page.hover import hover
from placeto.reports.page.report import Report
from placeto.reports.page.words import (
    group_rows,
    left_out,
    run_pairs,
    sensitivity_sentence,
    verdict,
)
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
    return environment.get_template("page.html").render(
        report=report,
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "script.js").read_text(encoding="utf-8"),
        verdict=verdict(report),
        left_out=left_out(report),
        timeline=timeline_figure(report),
        time=time_figure(report),
        memory=memory_figure(report),
        groups=groups_figure(report),
        group_rows=group_rows(report),
        search=search_figure(report),
        sensitivity=sensitivity_sentence(report),
        run=run_pairs(report),
        hover=hover(report),
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
