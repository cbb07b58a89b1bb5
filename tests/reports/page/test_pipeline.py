"""The picture of a pipelined step: which blocks are drawn where, by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest

from placeto.reports.page import pipeline
from placeto.reports.page.render import render
from placeto.reports.page.shapes import UNITS
from tests.builders import make_pipelined
from tests.reports.page.choosing import placement_of, report_of


@pytest.fixture(scope="module")
def report():
    """1F1B of two layers on two devices and three microbatches, 12 s."""
    problem = replace(make_pipelined(3), order="eager-1f1b")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [name.endswith("1") for name in problem.graph.op_names]
    return report_of(placement_of(problem, devices))


def boxes(path):
    """(begin, end) in seconds of each box of a path."""
    found = re.findall(r"M(\d+) 0h(\d+)v1", path)
    return [(int(x) * 12 / UNITS, (int(x) + int(w)) * 12 / UNITS) for x, w in found]


def test_blocks_are_where_they_run(report):
    figure = pipeline.pipeline_figure(report)
    assert (figure["order"], figure["kinds"]) == ("eager-1f1b", ["forward", "backward"])
    first, second = figure["lanes"]
    # The forward blocks of the first device follow each other without a pause.
    spans = [(0, 3), (4, 6), (7, 9), (10, 12)]
    drawn = boxes(first["paths"]["forward"]) + boxes(first["paths"]["backward"])
    assert np.allclose(drawn, spans, atol=12 / UNITS)
    assert [(each["text"], each["phase"], each["at"] * 12) for each in second["numbers"]] == [
        ("0", "forward", 1), ("0", "backward", 3), ("1", "forward", pytest.approx(4)),
        ("1", "backward", 6), ("2", "forward", pytest.approx(7)), ("2", "backward", 9),
    ]  # fmt: skip
    assert [each["share"] * 12 for each in second["numbers"]] == pytest.approx([2, 1] * 3)
    assert second["hover"][0] == (10**9, 3 * 10**9, "microbatch 0, forward\n2 s, ops: 1")
    assert (first["alive"], second["alive"]) == (3, 1)


def test_only_the_longest_blocks_have_numbers(report, monkeypatch):
    monkeypatch.setattr(pipeline, "MOST_BLOCKS", 7)
    first, second = pipeline.pipeline_figure(report)["lanes"]
    # Six take 2 s; of those of 1 s only the first one is left.
    assert [(each["text"], each["phase"]) for each in first["numbers"]] == [
        ("0", "forward"), ("0", "backward"), ("1", "backward"), ("2", "backward"),
    ]  # fmt: skip
    assert [each["text"] for each in second["numbers"]] == ["0", "1", "2"]


def test_the_page_says_what_the_bubble_is(report):
    page = render(report)
    section = re.sub(r"<.*?>|\s+", " ", page.split('id="pipeline"')[1].split("</section>")[0])
    # 18 of 24 s of two devices.
    assert "Bubble: 25.0% of the step, which is" in section
    assert "at most 3 alive" in section
    assert "at most 1 alive" in section
    table = page.split('id="placers"')[1].split("</table>")[0]
    chosen = table.split('class="chosen"')[1].split("</tr>")[0]
    assert re.findall(r'<td class="n">(.*?)</td>', chosen)[3:6] == ["2", "25.0%", "3"]
    alone = table.split("single")[1].split("</tr>")[0]
    assert re.findall(r'<td class="n">(.*?)</td>', alone)[3:5] == ["1", "0.0%"]
