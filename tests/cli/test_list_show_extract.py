import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from placeto import extraction, load_cluster, load_graph, save_graph
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
    assert listing["policies"] == [{"name": "placeto"}, {"name": "placeto-pipelined"}]


def test_show_counts_what_is_in_a_graph(placeto):
    document = placeto("show", "fork.json", "--grouping", "none", "--json").document
    assert document["ops"] == 4
    assert document["microbatches"] == 1
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
    save_graph(replace(load_graph("fork.json"), microbatch=[0, 0, 1, -1]), "pipelined.json")
    assert placeto("show", "pipelined.json", "--json").document["microbatches"] == 2


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
    assert load_graph("g.json.gz").name == "by hand"
    assert main(["extract", "zoo:any", "--name", "other", "-o", "g.json.gz"]) == 0
    assert load_graph("g.json.gz").name == "other"


def test_the_bundled_graphs_run_on_every_preset_of_the_papers(placeto):
    for name in ("k40x2", "k80x4-cpu", "p2.8xlarge"):
        kinds = set(load_cluster(name).kinds)
        assert kinds <= set(load_graph("nmt").op_seconds)
