"""The notebook of the docs, run."""

import json

import matplotlib as mpl

from tests.docs.blocks import ROOT

NOTEBOOK = ROOT / "docs" / "agent_in_a_minute.ipynb"


def test_the_agent_is_ahead_of_the_heuristics_in_fewer_updates_too(monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    code = "\n".join(sources)
    assert "updates=100" in code
    names = {}
    exec(compile(code.replace("updates=100", "updates=30"), NOTEBOOK.name, "exec"), names)
    assert len(names["reports"]) == 30
    assert names["learned"].step_time < 0.9 * min(names["heuristics"].values())
    assert len(names["axes"]) == 3
