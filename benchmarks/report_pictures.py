"""Pictures of a report: `python -m benchmarks.report_pictures`.

The upper part of the page that `placeto place inception_v3 --cluster k80x4 --report` writes, light
and dark. The search ends by its number of placements, so that the placement is always the same.
"""

import tempfile
from pathlib import Path

from benchmarks.browser import browser
from benchmarks.output import DOCS
from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.reports.page import RunContext, make_report, save_report
from placeto.reports.rows import baseline

EVALUATIONS = 20_000
BUDGET_SECONDS = 600.0
WIDTH = 1180  # px
LAST_SECTION = "#time"


def draw(folder: Path = DOCS) -> None:
    """Draws both pictures, and prints their names."""
    with tempfile.TemporaryDirectory() as temporary, browser() as running:
        page_file = Path(temporary) / "report.html"
        _write(page_file)
        for scheme in ("light", "dark"):
            page = running.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme)
            page.goto(page_file.as_uri())
            box = page.locator(LAST_SECTION).bounding_box()
            assert box is not None
            area = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 18}
            picture = folder / f"report_{scheme}.png"
            page.screenshot(path=picture, full_page=True, clip=area)
            page.close()
            print(picture)


def _write(path: Path) -> None:
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"))
    settings = {"max_evaluations": EVALUATIONS}
    placement = place(problem, "auto", BUDGET_SECONDS, settings=settings)
    command = (
        f"placeto place inception_v3 --cluster k80x4 --budget {BUDGET_SECONDS:g} "
        f"--set max_evaluations={EVALUATIONS}"
    )
    save_report(make_report(placement, baseline(problem), RunContext(command, "auto")), path)


if __name__ == "__main__":
    draw()
