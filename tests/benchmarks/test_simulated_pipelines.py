"""The study of pipelines in the simulator: its sources, what it keeps, its page."""

import sys
from itertools import pairwise

import pytest

from benchmarks import simulated_pipelines
from benchmarks.output import RESULTS
from benchmarks.simulated_pipelines import (
    CLUSTERS,
    MICROBATCHES,
    SOURCES,
    best,
    in_microbatches,
    markdown,
    too_large,
)
from benchmarks.splits import even_cut
from placeto.extraction.source import parse_source
from placeto.support.files import read_json, write_json
from tests.builders import make_cluster, make_graph, make_problem


@pytest.mark.parametrize("source", SOURCES.values())
def test_every_source_can_be_split(source):
    whole, split = parse_source(source), parse_source(in_microbatches(source, 8))
    assert split.target == whole.target
    assert split.options == {**whole.options, "microbatches": 8}


def step(fits=True, order="gpipe", **seconds):
    rows = {name.replace("_", " "): {"step_time": each, "fits": fits or name == "single"}
            for name, each in seconds.items()}  # fmt: skip
    return {"order": order, "ops": 100, "rows": rows, "lower_bound": 3.0, "bubble": 0.25,
            "devices": 4}  # fmt: skip


FOUND = {
    "1": step(single=10.0, even_cut=9.0, stages=8.0, auto=7.0),
    "2": step(fits=False, single=8.0, even_cut=1.0, stages=1.0, auto=1.0),
    "4": step(order="1f1b", single=12.0, even_cut=6.0, stages=8.8, auto=4.0),
}


def test_every_method_has_its_own_microbatches_and_so_has_the_single_device():
    assert best(FOUND, "single") == ("2", 8.0)
    # What does not fit is none, however fast.
    assert [best(FOUND, name) for name in ("even cut", "stages", "auto", "heft")] == [
        ("4", 6.0), ("1", 8.0), ("4", 4.0), None,
    ]  # fmt: skip
    first, second = markdown({"net": {"four": FOUND}}).split("\n\n")
    row = "| `net` | `four` | 8000 (2) | 0.75 (4) | 1.00 (1) | - | - | - | 0.50 (4) |"
    assert first.splitlines()[2] == f"{row} 0.38 | 4 | 25% | `1f1b` |"
    row = "| `net` | `four` | 100 | 0.88 | - | 0.50 | - | 1.25 | 1.00 | 1.50 | - |"
    assert second.splitlines()[2] == row


def test_results_of_other_models_stay(tmp_path, monkeypatch):
    document = read_json(RESULTS / "simulated_pipelines.json")
    (tmp_path / "build" / "simulated-pipelines").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(simulated_pipelines, "RESULTS", tmp_path)
    monkeypatch.setattr(simulated_pipelines, "graph_of", lambda source, path: source)
    monkeypatch.setattr(simulated_pipelines, "placed", lambda *_: FOUND["1"])
    monkeypatch.setattr(sys, "argv", ["simulated_pipelines", "--models", "nmt"])
    write_json(tmp_path / "simulated_pipelines.json", document)
    simulated_pipelines.main()
    after = read_json(tmp_path / "simulated_pipelines.json")
    counts = map(str, MICROBATCHES)
    assert after["found"]["nmt"][CLUSTERS[1]] == dict.fromkeys(counts, FOUND["1"])
    del after["found"]["nmt"], document["found"]["nmt"]
    assert after["found"] == document["found"]
    assert list(after["sources"]) == list(document["sources"])


def test_steps_of_too_many_ops_are_left_out():
    small, large = {"ops": 50_000}, {"ops": 50_001}
    assert not too_large({}, 1)
    assert not too_large({"1": large, "2": small}, 4)
    assert too_large({"1": small, "2": large}, 4)
    assert too_large({"1": small, "2": large}, 8)  # 4 is left out, too


def test_the_even_cut_is_of_layers_and_work():
    # A chain there and back, one op of which takes as long as four others.
    names = [f"op{number}" for number in range(12)]
    seconds = dict.fromkeys(names, 1.0) | {"op5": 4.0, "op6": 4.0}
    graph = make_graph(seconds, [(one, 1, [two]) for one, two in pairwise(names)])
    devices = even_cut(make_problem(graph, make_cluster(3)))
    # Of 18 s each device has six: layers 0 to 2, then 3 and 4 and half of the last, or all of it.
    assert devices.tolist() == [0, 0, 0, 1, 1, 2, 2, 1, 1, 0, 0, 0]


def test_it_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(simulated_pipelines, "graph_of", lambda source, path: source)
    monkeypatch.setattr(simulated_pipelines, "save", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["simulated_pipelines", "--quick"])
    placed = []

    def stopped(source, cluster, seconds):
        placed.append((source[-14:], cluster))
        if len(placed) == 5:
            raise KeyboardInterrupt
        return FOUND["1"]

    monkeypatch.setattr(simulated_pipelines, "placed", stopped)
    with pytest.raises(KeyboardInterrupt):
        simulated_pipelines.main()
    simulated_pipelines.main()
    wanted = [(f"microbatches={count}", cluster) for count in MICROBATCHES for cluster in CLUSTERS]
    assert placed == wanted[:5] + wanted[4:]


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "simulated_pipelines.json")
    assert (RESULTS / "simulated_pipelines.md").read_text() == markdown(document["found"])
