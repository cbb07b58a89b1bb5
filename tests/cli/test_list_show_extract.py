import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from placeto import PlacetoError, extraction, load_cluster, load_graph
from placeto.cli import main
from placeto.extraction import Extraction
from placeto.placers import PLACERS


def test_list_has_what_ships(placeto):
    listing = placeto("list", "--json").document
    graphs = {row["name"]: row for row in listing["graphs"]}
    assert {"inception_v3", "nmt"} <= set(graphs)
    assert graphs["nmt"]["kind"] == "sequence"
    assert graphs["inception_v3"]["source"] == "keras:InceptionV3?batch=32"
    for row in listing["graphs"]:
        assert row["ops"] == load_graph(row["name"]).num_ops
        assert 1 < row["groups"] <= 800
    clusters = {row["name"]: row for row in listing["clusters"]}
    assert [device["kind"] for device in clusters["k80x2-cpu"]["devices"]] == ["k80", "k80", "cpu"]
    assert all(row["source"] for row in listing["clusters"])
    assert [row["name"] for row in listing["placers"]] == list(PLACERS)
    assert listing["policies"] == [{"name": "placeto"}]


@pytest.mark.parametrize("columns", ["80", "120"])
def test_list_is_within_the_width(placeto, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    result = placeto("list")
    assert result.err == ""
    assert max(map(len, result.out.splitlines())) <= int(columns)
    for name in ("inception_v3", "a100x2-v100x2-cpu", "etf"):
        assert name in result.out


def test_show_counts_what_is_in_a_graph(placeto):
    document = placeto("show", "fork.json", "--grouping", "none", "--json").document
    assert document["ops"] == 4
    assert document["tensors"] == 3
    assert document["edges"] == 4
    assert document["tensor_bytes"] == 3
    assert document["op_seconds"] == {"k": 22.0}
    assert document["critical_path"] == 12.0  # a, b or c, d
    assert document["types"] == [{"type": "Op", "ops": 4, "seconds": 22.0, "share": 1.0}]
    assert document["grouping"] == {
        "grouping": "none",
        "num_groups": 4,
        "largest_ops": 1,
        "largest_time_share": 10 / 22,
        "time_imbalance": 10 / 5.5,
        "cut_bytes": 4,  # a's tensor goes to two groups
    }
    assert "on_cluster" not in document


@pytest.mark.parametrize("value", [{"model": "nmt"}, 4, [1, 2], True])
def test_show_takes_any_json_for_kind_and_source(placeto, value):
    document = json.loads(Path("fork.json").read_text())
    document["meta"] = {"kind": value, "source": value}
    Path("fork.json").write_text(json.dumps(document))
    assert placeto("show", "fork.json", "--json").document["source"] == value
    shown = placeto("show", "fork.json")
    assert shown.status == 0
    assert str(value) in shown.out
    assert "12 s on k" in shown.out


def test_show_on_a_cluster_has_bounds_and_the_best_single_device(placeto):
    argv = ("show", "fork.json", "--cluster", "duo.yaml")
    assert placeto(*argv, "--json").document["on_cluster"] == {
        "cluster": "by hand",
        "critical_path": 12.0,
        "work_bound": 11.0,
        "lower_bound": 13.0,  # b or c elsewhere costs a transfer, both on one device 9 s more
        "infeasibility": None,
        "single_device": "d0",
        "single_device_step_time": 22.0,
        "single_device_gap": 22 / 13,
        "single_device_feasible": True,
        "single_device_peak_memory": 3,
        "single_device_memory_limit": 100,
    }
    best = "d0: 22 s, at most 1.692 times the optimum, fits in memory: 3 B of 100 B"
    assert best in placeto(*argv).out


def test_show_says_that_nothing_fits(placeto):
    document = json.loads(Path("fork.json").read_text())
    document["ops"]["param_bytes"] = [0, 101, 0, 0]
    Path("fork.json").write_text(json.dumps(document))
    argv = ("show", "fork.json", "--cluster", "duo.yaml", "--grouping", "none")
    why = "no placement fits in memory: group 1 ('b' and what goes with it) needs at least 103 B"
    assert why in " ".join(placeto(*argv).out.split())
    shown = placeto(*argv, "--json").document["on_cluster"]
    assert why in shown["infeasibility"]
    assert shown["single_device_gap"] is None


def test_op_types_are_ranked_by_time_on_the_fastest_kind_of_the_cluster(placeto):
    assert placeto("show", "nmt", "--json").document["type_kind"] == "h100"
    argv = ("show", "nmt", "--cluster", "k80x4-cpu", "--json")
    document = placeto(*argv).document
    assert document["type_kind"] == "k80"
    seconds = [row["seconds"] for row in document["types"]]
    assert seconds == sorted(seconds, reverse=True)
    assert len(seconds) == 10
    assert document["types"][0]["type"] == "MatMul"
    assert sum(row["share"] for row in document["types"]) <= 1 + 1e-12


def test_show_of_a_graph_that_some_kind_cannot_run_all_of(placeto):
    document = json.loads(Path("fork.json").read_text())
    document["op_seconds"] = {"k": [1, None, 10, 1], "slow": [1, 1, 1, None]}
    Path("fork.json").write_text(json.dumps(document))
    shown = placeto("show", "fork.json", "--json").document
    assert shown["cannot_run"] == {"k": 1, "slow": 1}
    assert shown["op_seconds"] == {"k": 12.0, "slow": 3.0}
    assert "k 12 s (cannot run 1 ops)" in placeto("show", "fork.json").out


def test_show_of_a_graph_without_costs(placeto):
    document = json.loads(Path("fork.json").read_text())
    document["op_seconds"] = {}
    Path("fork.json").write_text(json.dumps(document))
    shown = placeto("show", "fork.json", "--json").document
    assert shown["type_kind"] is None
    assert shown["grouping"]["time_imbalance"] is None
    assert placeto("show", "fork.json").status == 0


def test_names_are_not_markup(placeto):
    document = json.loads(Path("fork.json").read_text())
    document["name"] = "[red]fork[/red] :smile:"
    Path("fork.json").write_text(json.dumps(document))
    assert "[red]fork[/red] :smile:" in placeto("show", "fork.json").out


class GraphDef:
    """Stands for TensorFlow's."""

    def SerializeToString(self, deterministic):  # noqa: N802
        return b"a graph"


def test_extract_writes_the_graph_and_keeps_stdout_clean(folder, monkeypatch, capfd):
    def noisy(source, *, progress):
        progress("tracing")
        print("a user's module prints")
        os.write(1, b"a runtime writes\n")
        sys.stdout.flush()
        meta = {"run": {}, "warnings": ["op 'a' has no size"]}
        return Extraction(replace(load_graph("fork.json"), meta=meta), GraphDef())

    monkeypatch.setattr(extraction, "extract", noisy)
    assert main(["extract", "zoo:any", "-o", "g.json.gz", "--json"]) == 0
    captured = capfd.readouterr()
    document = json.loads(captured.out)
    assert document["output"] == "g.json.gz"
    assert document["graph_def"] == "g.graphdef.gz"
    assert document["ops"] == 4
    assert document["warnings"] == ["op 'a' has no size"]
    for line in ("extract: tracing", "a user's module prints", "a runtime writes", "warning: op"):
        assert line in captured.err
    assert load_graph("g.json.gz").num_ops == 4
    assert Path("g.graphdef.gz").exists()


def test_extract_that_fails_writes_nothing(placeto, monkeypatch, tmp_path):
    def failing(source, *, progress):
        raise PlacetoError(f"{source}: no training step")

    monkeypatch.setattr(extraction, "extract", failing)
    result = placeto("extract", "zoo:any", "-o", "g.json")
    assert (result.status, result.out) == (2, "")
    assert result.err == "placeto: error: zoo:any: no training step\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["duo.yaml", "fork.json"]


def test_the_bundled_graphs_run_on_every_preset_of_the_papers(placeto):
    for name in ("k40x2", "k80x4-cpu", "p2.8xlarge"):
        kinds = set(load_cluster(name).kinds)
        assert kinds <= set(load_graph("nmt").op_seconds)
