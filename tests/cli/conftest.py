import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from placeto import save_cluster, save_graph
from placeto.cli import main
from placeto.support.beside import INSIDE
from tests.builders import make_cluster, make_graph


@dataclass(frozen=True)
class Result:
    """What one command did."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; NaN and infinity are none."""
        return json.loads(self.out, parse_constant=pytest.fail)

    @property
    def complaint(self) -> str:
        """The line by which bad input was refused, maybe after lines of progress."""
        assert (self.status, self.out) == (2, "")
        last = self.err.splitlines()[-1]
        assert last.startswith("placeto: error: ")
        return last


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The working folder, with `fork.json` and `duo.yaml` in it.

    The fork: a (1 s, 1 byte to both) before b and c (10 s each), before d (1 s).
    The cluster: two devices `d0`, `d1` of 100 bytes, 1 byte a second.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv(INSIDE, "1")  # no word of compiling where nothing is compiled yet
    graph = make_graph(
        {"a": 1.0, "b": 10.0, "c": 10.0, "d": 1.0},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    save_graph(graph, Path("fork.json"))
    save_cluster(make_cluster(2, memory=100), Path("duo.yaml"))
    return tmp_path


@pytest.fixture
def placeto(capsys, folder):
    """Runs a command in this process, in `folder`."""

    def run(*argv: str) -> Result:
        status = main([str(argument) for argument in argv])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run
