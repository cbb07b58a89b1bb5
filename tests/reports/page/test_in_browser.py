"""The report in a real Chromium: what a person sees, and that it asks no network for anything."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.browser import browser, find_browser
from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.reports.page import RunContext, make_report, save_report
from placeto.reports.rows import baseline
from tests.builders import make_cluster, make_graph, make_pipelined
from tests.reports.page.choosing import placement_of

HEADINGS = (
    "Placers",
    "Timeline of the step",
    "Where the time goes",
    "Memory",
    "Groups",
    "Search",
    "Sensitivity",
    "What was run",
)
WIDTHS = {"narrow": 390, "wide": 1400}


@pytest.fixture(scope="module")
def chromium():
    assert find_browser(), "there is no Chromium; python -m benchmarks.browser gets one"
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`nmt.html`: 300 groups by METIS; `nasty.html`: ops named like markup; `pipeline.html`."""
    folder = tmp_path_factory.mktemp("reports")
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 300)
    few = [place(problem, method) for method in ("single", "expert", "metis")]
    searched = ((1, 0.001, few[0].step_time), (90, 0.5, few[-1].step_time))
    found = replace(few.pop(), trace=searched, wall_seconds=1.0)
    report = make_report(found, baseline(problem), RunContext("placeto place nmt", "300"), few)
    save_report(report, folder / "nmt.html")

    name = "<script>document.title = 'taken over'</script><img src=x onerror=alert(1)>"
    graph = replace(make_graph({name: 1.0, "b": 1.0}, [(name, 1, ["b"])]), name=name)
    nasty = placement_of(PlacementProblem(graph, make_cluster(2), "none"), [0, 1])
    report = make_report(nasty, baseline(nasty.problem), RunContext(name, name, name), [])
    save_report(report, folder / "nasty.html")

    pipelined = replace(make_pipelined(60), order="gpipe")
    layers = ["1" in name.split("/")[1] for name in pipelined.graph.op_names]
    devices = np.zeros(pipelined.num_groups, dtype=np.int64)
    devices[pipelined.op_group] = layers
    found = placement_of(pipelined, devices)
    report = make_report(found, baseline(pipelined), RunContext("placeto place", "none"), [])
    save_report(report, folder / "pipeline.html")
    return folder


@pytest.fixture
def opened(chromium, folder):
    """Opens a page; at the end it must have complained of nothing and asked for nothing."""
    contexts, complaints, requests = [], [], []

    def open_page(name="nmt.html", width=WIDTHS["wide"], scheme="light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((folder / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    files = {(folder / name).as_uri() for name in ("nmt.html", "nasty.html", "pipeline.html")}
    assert {url for url in requests if not url.startswith("data:")} <= files


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("width", WIDTHS)
def test_every_part_is_there_and_is_seen(opened, width):
    page = opened(width=WIDTHS[width])
    assert page.get_by_role("heading", level=1).inner_text() == "nmt on k80x4"
    assert [each.inner_text() for each in page.get_by_role("heading", level=2).all()] == list(
        HEADINGS
    )
    for section in page.locator("section").all():
        assert section.bounding_box()["height"] > 80
    for image in page.get_by_role("img").all():
        assert len(image.get_attribute("aria-label")) > 5
        box = image.bounding_box()
        assert box["width"] > 200
        assert box["height"] >= 12
    assert page.get_by_role("img").count() == 4 + 4 + 4 + 4 + 1 + 1  # one a lane, graph, search
    for name in page.locator(".lane .name").all():
        assert name.bounding_box()["width"] > 40
    assert 150 < page.locator("#graph circle").count() < 300  # those that work
    assert page.get_by_role("button").count() == 3
    assert overflow(page) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_background(opened, scheme):
    page = opened(scheme=scheme)
    paper = colour(page, "body", "backgroundColor")
    assert (luminance(paper) > 0.8) == (scheme == "light")
    card = colour(page, "section", "backgroundColor")
    for selector, behind in (("body", paper), ("h2", card), (".note", paper), ("thead th", card)):
        assert contrast(colour(page, selector, "color"), behind) >= 4.5
    # What is drawn stands out, too.
    for device in range(4):
        assert contrast(colour(page, f".lane.d{device} .busy", "fill"), paper) >= 2.4


def test_the_timeline_zooms(opened):
    page = opened()
    lane = page.locator("#timeline .lane .plot svg").first
    memory = page.locator("#memory .lane .plot svg").first
    labels = page.locator("#timeline .ticks").inner_text()
    page.get_by_role("button", name="Zoom in").click()
    assert lane.get_attribute("viewBox") == memory.get_attribute("viewBox") == "5000 0 10000 1"
    assert page.locator("#timeline .ticks").inner_text() != labels
    page.get_by_role("button", name="Zoom out").click()
    assert lane.get_attribute("viewBox") == "0 0 20000 1"
    assert page.locator("#timeline .ticks").inner_text() == labels

    # By keys alone.
    later = page.get_by_role("button", name="Later")
    assert later.is_hidden()
    page.get_by_role("button", name="Zoom in").press("Enter")
    later.press("Enter")
    assert lane.get_attribute("viewBox") == memory.get_attribute("viewBox") == "10000 0 10000 1"
    page.get_by_role("button", name="Earlier").press("Enter")
    assert lane.get_attribute("viewBox") == "5000 0 10000 1"
    page.get_by_role("button", name="Zoom out").press("Enter")
    assert later.is_hidden()

    box = lane.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=3)
    page.mouse.up()
    begin, _, width, _ = map(float, lane.get_attribute("viewBox").split())
    assert begin == pytest.approx(5000, abs=60)
    assert width == pytest.approx(5000, abs=60)
    page.get_by_role("button", name="Whole step").click()
    assert lane.get_attribute("viewBox") == "0 0 20000 1"


def test_pointing_tells_names_and_times(opened):
    page = opened()
    tip = page.locator("#tip")
    assert tip.is_hidden()
    span = page.evaluate("JSON.parse(document.getElementById('hover').textContent).device[0]")
    begin, end, _ = max(span, key=lambda each: each[1] - each[0])
    lane = page.locator("#timeline .plot").first
    lane.scroll_into_view_if_needed()
    box = lane.bounding_box()
    step = float(page.locator("#timeline figure").get_attribute("data-step")) * 1e9
    page.mouse.move(box["x"] + box["width"] * (begin + end) / 2 / step, box["y"] + 13)
    assert " at " in f" {tip.inner_text()}".replace("\n", " ")
    circle = page.locator("#graph circle").nth(150)
    circle.scroll_into_view_if_needed()
    circle.hover()
    assert "of work" in tip.inner_text()
    assert page.locator("#graph circle.near").count() >= 1
    page.mouse.move(0, 0)
    assert tip.is_hidden()
    assert page.locator("#graph .near").count() == 0


def test_a_number_is_seen_where_its_block_is_wide_enough(opened):
    page = opened("pipeline.html", width=WIDTHS["narrow"])
    blocks = page.locator("#pipeline .numbers b")

    def seen():
        """Which numbers are, in the lane and within their blocks."""
        return page.evaluate("""() => {
            const box = (element) => element.getBoundingClientRect();
            const seen = (block) => {
                const range = document.createRange();
                range.selectNodeContents(block);
                const [text, own, lane] = [box(range), box(block), box(block.closest(".plot"))];
                const inside = text.left >= own.left - 0.5 && text.right <= own.right + 0.5;
                return inside && text.top < own.bottom - 5 && text.right > lane.left
                    && text.left < lane.right;
            };
            const blocks = [...document.querySelectorAll("#pipeline .numbers b")];
            return blocks.filter(seen).map((block) => block.textContent);
        }""")

    assert blocks.count() == 2 * 2 * 60
    assert seen() == []  # a microbatch has 3 pixels
    for _ in range(5):
        page.get_by_role("button", name="Zoom in").press("Enter")
    assert len(seen()) > 4
    assert set(seen()) <= set(map(str, range(60)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_can_be_read_on_the_blocks_of_every_device(opened, scheme):
    page = opened("pipeline.html", scheme=scheme)
    paper = colour(page, "body", "backgroundColor")
    for device in range(8):
        page.locator("#pipeline .lane").first.evaluate(f"lane => lane.className = 'lane d{device}'")
        fills = {}
        for phase in ("forward", "backward"):
            fills[phase] = colour(page, f"#pipeline path.{phase}", "fill")
            text = colour(page, f"#pipeline .numbers .{phase}", "color")
            assert contrast(text, fills[phase]) >= 4.5
            assert contrast(fills[phase], paper) >= 1.8
        assert contrast(*fills.values()) >= 2


def test_pointing_at_a_block_tells_its_microbatch(opened):
    page = opened("pipeline.html")
    lane = page.locator("#pipeline .plot").first
    lane.scroll_into_view_if_needed()
    box = lane.bounding_box()
    page.mouse.move(box["x"] + 0.0001 * box["width"], box["y"] + 13)
    assert page.locator("#tip").inner_text().startswith("microbatch 0, forward\n")


def test_names_are_text_and_nothing_runs(opened):
    page = opened("nasty.html")
    assert page.get_by_role("heading", level=1).inner_text().startswith("<script>document.title")
    assert page.title().startswith("<script>")
    assert page.locator("img[src]").count() == 0
    assert overflow(page) <= 0
    assert overflow(opened("nasty.html", width=390)) <= 0


def test_it_is_whole_without_scripts_and_on_paper(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("#timeline .busy").first.bounding_box()["height"] > 20
    assert page.locator("#graph circle").nth(10).bounding_box()["width"] >= 5
    page.emulate_media(media="print")
    assert page.get_by_role("navigation").is_hidden()
    assert page.get_by_role("button", name="Zoom in").is_hidden()
    assert page.get_by_role("heading", name="Sensitivity").is_visible()


def colour(page, selector, name):
    """(red, green, blue) from 0 to 1."""
    pixel = page.locator(selector).first.evaluate("""(element, name) => {
        const canvas = new OffscreenCanvas(1, 1).getContext("2d");
        canvas.fillStyle = getComputedStyle(element)[name];
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    }""", name)  # fmt: skip
    return tuple(part / 255 for part in pixel[:3])


def luminance(rgb):
    """Relative luminance, WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Contrast ratio, WCAG 2.2."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)
