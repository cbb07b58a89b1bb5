"""The study of pipelines in the simulator: its sources, what it keeps, its page."""

import sys

import pytest

from benchmarks import simulated_pipelines
from benchmarks.output import RESULTS
from benchmarks.simulated_pipelines import CLUSTERS, SOURCES, in_microbatches, markdown
from placeto.extraction.source import parse_source
from placeto.support.files import read_json, write_json


@pytest.mark.parametrize("source", SOURCES.values())
def test_every_source_can_be_split(source):
    whole, split = parse_source(source), parse_source(in_microbatches(source, 8))
    assert split.target == whole.target
    assert split.options == {**whole.options, "microbatches": 8}


def test_results_of_other_models_stay(tmp_path, monkeypatch):
    document = read_json(RESULTS / "simulated_pipelines.json")
    language = document["found"]["language"][CLUSTERS[0]]["8"]
    (tmp_path / "build" / "simulated-pipelines").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(simulated_pipelines, "RESULTS", tmp_path)
    monkeypatch.setattr(simulated_pipelines, "graph_of", lambda source, path: source)
    monkeypatch.setattr(simulated_pipelines, "placed", lambda *_: language)
    monkeypatch.setattr(sys, "argv", ["simulated_pipelines", "--models", "nmt"])
    write_json(tmp_path / "simulated_pipelines.json", document)
    simulated_pipelines.main()
    after = read_json(tmp_path / "simulated_pipelines.json")
    assert after["found"]["nmt"][CLUSTERS[1]] == {"1": language, "8": language}
    del after["found"]["nmt"], document["found"]["nmt"]
    assert after["found"] == document["found"]
    assert list(after["sources"]) == list(SOURCES)


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "simulated_pipelines.json")
    assert (RESULTS / "simulated_pipelines.md").read_text() == markdown(document["found"])
