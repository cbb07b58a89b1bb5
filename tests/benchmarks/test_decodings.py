"""The study of decodings: its page, and its means."""

import math

import pytest

from benchmarks.decodings import DECODINGS, markdown, means
from benchmarks.output import RESULTS
from placeto.support.files import read_json

RATIOS = {
    "greedy": {"a on x": 0.5, "a on y": 0.8},
    "beam": {"a on x": 0.5, "a on y": 0.2},
}


def test_means_are_geometric():
    assert means(RATIOS, ("x", "y")) == {
        "greedy": pytest.approx(math.sqrt(0.4)),
        "beam": pytest.approx(math.sqrt(0.1)),
    }
    assert means(RATIOS, ("y",))["greedy"] == pytest.approx(0.8)


def test_the_table_says_how_often_none_is_better():
    rows = [line.split(" | ") for line in markdown(RATIOS).splitlines()[2:]]
    assert [row[-1] for row in rows] == ["1 of 2 |", "2 of 2 |"]
    assert [row[1:4] for row in rows] == [
        ["0.5000", "0.8000", "0.6325"],
        ["0.5000", "0.2000", "0.3162"],
    ]


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "decodings.json")
    assert tuple(document["ratios"]) == DECODINGS
    assert (RESULTS / "decodings.md").read_text() == markdown(document["ratios"])
