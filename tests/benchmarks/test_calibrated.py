from pathlib import Path

import pytest

from benchmarks import calibrated
from placeto import load_graph, save_graph
from placeto.support.errors import PlacetoError
from tests.builders import make_graph


@pytest.fixture
def commands(monkeypatch):
    """The commands that were given; each writes what it should, in next to no time."""
    given = []

    def placeto(words):
        given.append(words)
        if words[0] == "extract":
            save_graph(make_graph({"a": 1.0}, []), Path(words[-1]))
        else:
            folder = Path(words[words.index("-o") + 1])
            folder.mkdir()
            calibrated.cluster_file(folder).touch()
        return 0

    monkeypatch.setattr(calibrated, "placeto", placeto)
    return given


def test_what_is_there_is_not_made_again(commands, tmp_path):
    folder = tmp_path / "new"
    sources = {"one": "zoo:one", "two": "zoo:two"}
    found = calibrated.prepare(sources, ("--steps", "3"), folder)
    assert [words[:2] for words in commands[:2]] == [["extract", "zoo:one"], ["extract", "zoo:two"]]
    graphs = [str(folder / "one.json.gz"), str(folder / "two.json.gz")]
    assert commands[2] == [
        "calibrate", "--cluster", "local-2", "--graph", graphs[0], "--graph", graphs[1],
        "-o", str(found), "--steps", "3",
    ]  # fmt: skip
    assert [load_graph(path).name for path in graphs] == ["one", "two"]
    assert calibrated.prepare(sources, ("--steps", "3"), folder) == found
    assert len(commands) == 3


def test_a_command_that_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(calibrated, "placeto", lambda words: 2)
    with pytest.raises(PlacetoError, match=r"placeto extract zoo:one .* exit status 2"):
        calibrated.prepare({"one": "zoo:one"}, (), tmp_path)
