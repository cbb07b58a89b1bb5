import html
import re
import shlex
from pathlib import Path

import pytest

from placeto.cli import INTERRUPTED
from placeto.placers import PLACERS, Placer

FORK = ("fork.json", "--cluster", "duo.yaml", "--grouping", "none")
PLACE = ("place", *FORK, "--method", "etf")


@pytest.fixture
def never(monkeypatch):
    """A placer `never`, which must not be run."""

    def fail(incumbent, rng):
        pytest.fail("the search began")

    monkeypatch.setitem(PLACERS, "never", Placer("never", "", fail, anytime=True))


def test_the_page_is_written_and_what_it_took_is_said(placeto):
    result = placeto(*PLACE, "--report", "r.html", "--json")
    assert result.status == 0
    assert result.document["report"] == "r.html"
    assert re.search(r"placeto: the report is in r\.html; it took [\d.]+ \w+ more", result.err)
    page = Path("r.html").read_text()
    assert "<h1>by hand <span>on</span> by hand</h1>" in page
    assert "A step takes 13 s on 2 of 2 devices" in page


def test_the_command_on_the_page_finds_the_placement_again(placeto):
    argv = (*PLACE, "--method", "random", "--seed", "3", "--pin", "b=d1", "--budget", "5")
    first = placeto(*argv, "--report", "r.html", "--json").document
    text = re.search(r"<code>(.*?)</code>", Path("r.html").read_text())[1]
    program, *words = shlex.split(html.unescape(text))
    assert program == "placeto"
    again = placeto(*words, "--json").document
    for key in ("placement", "step_time", "seed", "method", "grouping"):
        assert again[key] == first[key]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing/r.html", "missing/r.html: cannot be written: No such file or directory"),
        (".", ".: cannot be written: not an ordinary file"),
        ("fork.json", "fork.json: would be overwritten; give every file its own name"),
        ("p.json", "p.json: would be overwritten; give every file its own name"),
    ],
)
def test_where_it_cannot_be_written_the_search_does_not_begin(placeto, never, path, problem):
    result = placeto("place", *FORK, "--method", "never", "-o", "p.json", "--report", path)
    assert result.complaint == f"placeto: error: {problem}"
    assert sorted(path.name for path in Path().iterdir()) == ["duo.yaml", "fork.json"]


@pytest.mark.parametrize("method", ["heft", "random"])
def test_ctrl_c_in_the_report_keeps_the_placement(placeto, monkeypatch, method):
    # Of the placers that the choice is compared with one has found something by then, or nothing.
    def interrupted(incumbent, rng):
        if method == "random":
            incumbent.offer([1] * incumbent.problem.num_groups)
        raise KeyboardInterrupt

    monkeypatch.setitem(PLACERS, method, Placer(method, "", interrupted))
    result = placeto(*PLACE, "--report", "r.html", "--json")
    assert result.status == INTERRUPTED
    assert result.document["step_time"] == 13.0
    assert result.document["report"] is None
    assert "there is no report" in result.err
    assert sorted(path.name for path in Path().iterdir()) == ["duo.yaml", "fork.json"]
