import json
from pathlib import Path

import pytest

from placeto.placers import PLACERS, Placer

FORK = ("fork.json", "--cluster", "duo.yaml", "--grouping", "none")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Only the placers that end by themselves."""
    for name in [placer.name for placer in PLACERS.values() if placer.anytime]:
        monkeypatch.delitem(PLACERS, name)


def test_all_placers_that_apply_in_one_table(placeto):
    result = placeto("compare", *FORK, "--json")
    assert result.status == 0
    rows = result.document["rows"]
    heuristics = ["stages", "scotch", "mincut", "metis", "etf", "heft", "m-topo", "m-etf", "m-sct"]
    assert [row["method"] for row in rows] == ["single", "random", "expert", *heuristics]
    assert "cpu is left out: cluster 'by hand' has no device of kind cpu" in result.err
    by_method = {row["method"]: row for row in rows}
    assert by_method["single"]["step_time"] == 22.0
    assert by_method["single"]["ratio"] == 1.0
    assert by_method["etf"]["step_time"] == 13.0
    assert by_method["random"]["evaluations"] == 100
    keys = set(placeto("place", *FORK, "--method", "etf", "--json").document)
    files = {"output", "timeline", "device_map", "pipeline_plan", "report"}
    assert all(set(row) == keys - files for row in rows)


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_is_plain_and_within_the_width(placeto, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    result = placeto("compare", *FORK, "--methods", "single,etf")
    lines = result.out.splitlines()
    assert lines[0] == "by hand on by hand, 4 groups"
    header = next(line for line in lines if "method" in line)
    for column in ("step time", "ratio", "gap", "peak memory", "fits", "placed"):
        assert column in header
    etf = next(line for line in lines if "etf" in line)
    assert etf.split()[:5] == ["etf", "13", "s", "0.591", "1.000"]
    assert "3/100 B" in etf
    assert "no placement that fits is below 13 s" in " ".join(result.out.split())
    assert max(map(len, lines)) <= int(columns)
    assert "\x1b" not in result.out


def test_several_graphs_are_several_tables_and_one_list_of_rows(placeto):
    argv = ("fork.json", "nmt", "--cluster", "mixed.yaml", "--methods", "single,etf")
    document = json.loads(Path("fork.json").read_text())
    document["op_seconds"]["k80"] = document["op_seconds"]["k"]
    Path("fork.json").write_text(json.dumps(document))
    cluster = Path("duo.yaml").read_text().replace("kind: k", "kind: k80")
    Path("mixed.yaml").write_text(cluster.replace("memory: 100", "memory: 12GiB"))
    result = placeto("compare", *argv, "--json", "-o", "rows.json")
    rows = result.document["rows"]
    assert [(row["graph"], row["method"]) for row in rows] == [
        ("by hand", "single"),
        ("by hand", "etf"),
        ("nmt", "single"),
        ("nmt", "etf"),
    ]
    assert json.loads(Path("rows.json").read_text()) == result.document
    shown = placeto("compare", *argv)
    assert "by hand on by hand" in shown.out
    assert "nmt on by hand, 800 groups" in shown.out


def test_ctrl_c_leaves_the_rows_until_then(placeto, monkeypatch):
    def run(incumbent, rng):
        incumbent.offer([1] * incumbent.problem.num_groups)
        raise KeyboardInterrupt

    monkeypatch.setitem(PLACERS, "slow", Placer("slow", "", run, anytime=True))
    argv = ("compare", *FORK, "--methods", "single,slow,etf")
    result = placeto(*argv, "--json", "-o", "rows.json")
    assert result.status == 130
    assert [row["method"] for row in result.document["rows"]] == ["single", "slow"]
    assert result.document["interrupted"] is True
    assert json.loads(Path("rows.json").read_text()) == result.document
    assert placeto(*argv).status == 130
