"""The upper part of a report's page, light and dark: `python -m benchmarks.report_pictures`.

The search ends by its number of placements, so that the placement is always the same.
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

if __name__ == "__main__":
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"))
    settings = {"max_evaluations": EVALUATIONS}
    placement = place(problem, "auto", BUDGET_SECONDS, settings=settings)
    command = (
        f"placeto place inception_v3 --cluster k80x4 --budget {BUDGET_SECONDS:g} "
        f"--set max_evaluations={EVALUATIONS}"
    )
    report = make_report(placement, baseline(problem), RunContext(command, "auto"))
    with tempfile.TemporaryDirectory() as temporary, browser() as running:
        page_file = Path(temporary) / "report.html"
        save_report(report, page_file)
        for scheme in ("light", "dark"):
            page = running.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme)
            page.goto(page_file.as_uri())
            box = page.locator(LAST_SECTION).bounding_box()
            assert box is not None
            area = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 18}
            picture = DOCS / f"report_{scheme}.png"
            page.screenshot(path=picture, full_page=True, clip=area)
            page.close()
            print(picture)
