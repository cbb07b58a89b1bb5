"""`placeto evaluate`."""

import json
import math
from pathlib import Path

import pytest

from placeto import save_cluster
from placeto.placers import PLACERS, Placer
from placeto.zoo.families import members
from tests.builders import make_cluster

FORK = ("--graphs", "fork.json", "--cluster", "duo.yaml", "--grouping", "none")
EVALUATE = ("evaluate", "--policy", "run", *FORK)


@pytest.fixture(autouse=True)
def trained(placeto):
    """A policy in `run`, trained for an update on the fork."""
    agent = ("--agent", "placeto-2019", "--rounds", "1", "--width", "4")
    small = (*agent, "--updates", "1", "--episodes", "2")
    assert placeto("train", *FORK, *small, "-o", "run").status == 0


def test_json_is_one_document(placeto):
    result = placeto(*EVALUATE, "--fine-tune", "4", "--json")
    assert (result.status, result.document["policy"]) == (0, "run")
    rows = {row["method"]: row for row in result.document["rows"]}
    beside = ["single", "expert", "etf", "heft"]
    assert list(rows) == [*beside, "greedy", "best of 16", "fine-tuned 4"]
    # One device takes 22 s; apart, b and c take 1 + 1 + 10 + 1.
    assert rows["single"]["step_time"] == rows["single"]["single_device_step_time"] == 22.0
    assert (rows["etf"]["step_time"], rows["etf"]["ratio"]) == (13.0, 13 / 22)
    assert rows["best of 16"]["step_time"] <= rows["greedy"]["step_time"] <= 22
    assert rows["fine-tuned 4"]["step_time"] >= 13
    assert all(row["feasible"] and row["wall_seconds"] >= 0 for row in rows.values())
    assert rows["greedy"]["evaluations"] < rows["best of 16"]["evaluations"]
    means = {mean["method"]: mean for mean in result.document["means"]}
    assert {method: mean["ratio"] for method, mean in means.items()} == {
        method: pytest.approx(row["ratio"]) for method, row in rows.items()
    }


def test_what_a_policy_that_guides_finds_is_refined(placeto):
    argv = ("evaluate", "--policy", "placeto", *FORK, "--samples", "4", "--methods", "etf")
    rows = placeto(*argv, "--json").document["rows"]
    found = {row["method"]: row for row in rows}
    assert list(found) == ["single", "etf", "greedy", "best of 4", "best of 4, refined"]
    assert found["best of 4, refined"]["step_time"] <= found["greedy"]["step_time"]
    assert found["best of 4, refined"]["evaluations"] > found["best of 4"]["evaluations"]


def test_decodings_have_a_row_each(placeto):
    argv = ("evaluate", "--policy", "placeto", *FORK, "--samples", "1", "--methods", "etf")
    many = ("--decoding", "greedy, beam,greedy", "--budget", "0.2")
    rows = placeto(*argv, *many, "--json").document["rows"]
    found = {row["method"]: row for row in rows}
    assert list(found) == ["single", "etf", "greedy", "greedy, 0.2 s", "beam, 0.2 s"]
    assert found["beam, 0.2 s"]["step_time"] <= found["greedy, 0.2 s"]["step_time"]
    wrong = placeto(*argv, "--decoding", "best")
    assert "--decoding best: expected greedy, sampling, starts, mirrored" in wrong.complaint
    other = placeto(*EVALUATE, "--decoding", "beam")
    assert "--decoding: run is a policy of placeto-2019" in other.complaint


def test_test_graphs_of_a_family_on_two_clusters(placeto):
    argv = ("--policy", "run", "--graphs", "family:layered", "--cluster", "k80x2", "k40x2")
    few = ("--grouping", "4", "--samples", "1", "--methods", "etf", "-o", "rows.json")
    document = placeto("evaluate", *argv, *few, "--json").document
    made = [member.name for member in members("layered") if member.split == "test"]
    found = dict.fromkeys((row["graph"], row["cluster"]) for row in document["rows"])
    assert list(found) == [(graph, cluster) for graph in made for cluster in ("k80x2", "k40x2")]
    assert [mean["method"] for mean in document["means"]] == ["single", "etf", "greedy"]
    for mean in document["means"]:
        ratios = [row["ratio"] for row in document["rows"] if row["method"] == mean["method"]]
        assert len(ratios) == mean["problems"] == 16
        assert mean["ratio"] == pytest.approx(math.prod(ratios) ** (1 / 16))
    assert json.loads(Path("rows.json").read_text()) == document


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_is_plain_and_within_the_width(placeto, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    result = placeto(*EVALUATE, "--fine-tune", "2")
    lines = result.out.splitlines()
    assert lines[0] == "run on by hand"
    fork = next(line for line in lines if line.startswith(" by hand"))
    # One device, then expert, etf and heft over it, and the policy.
    assert fork.split()[2:7] == ["22", "s", "0.591", "0.591", "0.591"]
    assert len(fork.split()) == 10
    mean = next(line for line in lines if "geometric mean  " in line and "0." in line)
    assert mean.split()[2:] == fork.split()[4:]
    etf = next(line for line in lines if line.startswith(" etf"))
    assert etf.split()[1:5] == ["0.591", "1", "of", "1"]
    assert max(map(len, lines)) <= int(columns)
    assert "\x1b" not in result.out


def test_ctrl_c_leaves_the_rows_until_then(placeto, monkeypatch):
    def run(incumbent, rng):
        incumbent.offer([1] * incumbent.problem.num_groups)
        raise KeyboardInterrupt

    monkeypatch.setitem(PLACERS, "slow", Placer("slow", "", run, anytime=True))
    result = placeto(*EVALUATE, "--methods", "etf,slow,heft", "--json", "-o", "rows.json")
    assert result.status == 130
    assert [row["method"] for row in result.document["rows"]] == ["single", "etf", "slow"]
    assert result.document["interrupted"] is True
    assert json.loads(Path("rows.json").read_text()) == result.document


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["evaluate"], "missing from placeto evaluate"),
        ([*EVALUATE, "--policy", "nowhere"], "nowhere"),
        ([*EVALUATE, "--methods", "ettf"], "no placer is called 'ettf'; placers: "),
        ([*EVALUATE, "--fine-tune", "-1"], "--fine-tune -1: expected a whole number from 0"),
        ([*EVALUATE, "--samples", "0"], "--samples 0: expected a whole number from 1"),
        ([*EVALUATE, "--seed", "-1"], "--seed -1: expected a whole number from 0"),
        ([*EVALUATE, "--split", "tset"], "--split"),
        ([*EVALUATE, "--graphs"], "no problem to evaluate on"),
        ([*EVALUATE, "--graphs", "mnt"], "mnt: no such file, and no bundled name"),
        ([*EVALUATE, "-o", "fork.json"], "fork.json: would be overwritten"),
        (
            [*EVALUATE, "--cluster", "trio.yaml"],
            "made for num_devices = 2, but by hand on by hand needs num_devices = 3",
        ),
    ],
)
def test_what_is_wrong_is_one_line(placeto, argv, says):
    save_cluster(make_cluster(3, memory=100), Path("trio.yaml"))
    result = placeto(*argv)
    assert says in result.complaint
