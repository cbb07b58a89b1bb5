"""`placeto train`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from placeto import save_cluster
from placeto.cli.parsing import parse
from placeto.cli.train import arguments_of
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.models.placeto.settings import PlacetoConfig
from placeto.training import load_policy
from placeto.zoo.families import members
from tests.builders import make_cluster

TRAIN = (
    *("train", "--graphs", "fork.json", "--cluster", "duo.yaml", "--grouping", "none", "-o", "run"),
    *("--agent", "placeto-2019", "--updates", "3", "--episodes", "2", "--rounds", "1"),
)


def test_json_is_one_document(placeto, tmp_path):
    result = placeto(*TRAIN, "--json")
    assert result.status == 0
    assert result.document == {
        "output": "run",
        "updates": 3,
        "episodes": 6,
        "evaluations": result.document["evaluations"],
        "best_step_time": {"by hand": result.document["best_step_time"]["by hand"]},
    }
    assert result.document["evaluations"] >= 6
    assert 13 <= result.document["best_step_time"]["by hand"] <= 22
    assert "3 updates, 6 episodes; the run is in run" in result.err
    assert load_policy(tmp_path / "run").config.num_devices == 2
    for name in ("config.json", "metrics.jsonl", "policy.json", "policy.safetensors", "trainer.pt"):
        assert (tmp_path / "run" / name).exists()


def test_the_same_command_goes_on(placeto, tmp_path):
    first = placeto(*TRAIN, "--json")
    before = (tmp_path / "run" / "policy.safetensors").read_bytes()
    assert placeto(*TRAIN, "--json").document == first.document
    assert (tmp_path / "run" / "policy.safetensors").read_bytes() == before


def test_another_order_is_another_run(placeto):
    assert placeto(*TRAIN, "--order", "critical-path").status == 0
    assert placeto(*TRAIN, "--order", "critical-path").status == 0
    refused = placeto(*TRAIN)
    assert refused.status == 2
    assert "holds a run on other graphs, another grouping, order or cluster" in refused.err
    assert "which goes by microbatches" in placeto(*TRAIN, "--order", "gpipe").err


def test_every_graph_on_every_cluster(placeto, tmp_path):
    argv = ("train", "--graphs", "nmt", "family:layered", "--cluster", "k80x2", "k40x2", "k80x2")
    small = ("--grouping", "4", "--episodes", "1", "--updates", "1", "--rounds", "1")
    result = placeto(*argv, *small, "--validate", "-o", "run", "--json")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    made = [member.name for member in members("layered") if member.split == "train"]
    expected = [(graph, cluster) for graph in ["nmt", *made] for cluster in ("k80x2", "k40x2")]
    assert [(row["graph"], row["cluster"]) for row in config["problems"]] == expected
    assert list(result.document["best_step_time"]) == [f"{g} on {c}" for g, c in expected]
    assert "validation" not in config


def test_clusters_take_turns(placeto, tmp_path):
    argv = ("train", "--graphs", "family:layered", "--per-graph", "2", "--grouping", "4")
    clusters = ("--cluster", "k80x2", "k40x2", "k80x4")
    small = ("--episodes", "1", "--updates", "1", "--rounds", "1", "-o", "run")
    assert placeto(*argv, *clusters, *small).status == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    found = [(row["graph"], row["cluster"]) for row in config["problems"]]
    made = [member.name for member in members("layered") if member.split == "train"]
    turns = [clusters[1 + number % 3] for number in range(2 * len(made))]
    assert found == [(made[number // 2], turns[number]) for number in range(2 * len(made))]
    assert len(config["validation"]) == 2 * 4
    refused = placeto(*argv, *clusters, *small, "--per-graph", "0")
    assert "--per-graph 0: expected at least 1" in refused.complaint


def test_pipelined_graphs_are_trained_in_an_order_of_theirs():
    parsed = parse(
        arguments_of(argv := ["train", "--graphs", "nmt_small", "nmt_small_m8", "-o", "run",
                              "--cluster", "k80x2", "--grouping", "8"]),
        argv[1:], "placeto train",
    )  # fmt: skip
    assert [problem.order for problem in parsed.problems("train")] == ["fifo", "eager-1f1b"]
    named = replace(parsed, order="critical-path")
    assert [problem.order for problem in named.problems("train")] == ["critical-path"] * 2


def test_families_bring_their_validation_graphs(placeto, tmp_path):
    argv = ("train", "--graphs", "nmt", "family:random", "--cluster", "k80x2", "--grouping", "4")
    small = ("--episodes", "1", "--updates", "1", "--rounds", "1")
    assert placeto(*argv, *small, "-o", "run").status == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    expected = [member.name for member in members("random") if member.split == "validation"]
    assert [row["graph"] for row in config["validation"]] == expected
    card = json.loads((tmp_path / "run" / "policy.json").read_text())
    assert [row["graph"] for row in card["validated"]["problems"]] == expected


@pytest.mark.parametrize("agent", ["placeto", "colocrl", "hierarchical"])
@pytest.mark.parametrize("form", [("--agent", "{}"), ("--agent={}",)])
def test_each_agent_has_its_own_settings(agent, form):
    argv = [*TRAIN[:-2], *(text.format(agent) for text in form)]
    kind = arguments_of(argv)
    parsed = parse(kind, argv[1:], "placeto train")
    defaults = {
        "placeto": PlacetoConfig(),
        "colocrl": ColocRLConfig(),
        "hierarchical": HierarchicalConfig(),
    }
    assert parsed.training == replace(defaults[agent], updates=3, episodes=2)
    assert parsed.agent == agent


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["train"], "missing from placeto train"),
        (["train", "--graphs", "nmt", "--cluster", "k80x2"], "-o DIR"),
        (["train", "--graphs", "--cluster", "k80x2", "-o", "run"], "no problem to train on"),
        ([*TRAIN, "--graphs", "mnt"], "mnt: no such file, and no bundled name"),
        ([*TRAIN, "--updates", "0"], "updates is 0, expected a whole number from 1"),
        ([*TRAIN, "--updates", "x"], "invalid literal for int()"),
        ([*TRAIN, "--updtes", "3"], "perhaps you meant: --updates"),
        (
            [*TRAIN, "--agent", "colocrl"],
            "--rounds is no option of --agent colocrl, but of placeto, p",
        ),
        ([*TRAIN, "--cluster", "duo.yaml", "trio.yaml"], "problems have 2, 3 devices"),
        (
            [*TRAIN, "--graphs", "fork.json", "./fork.json"],
            "two graphs are called 'by hand' on clu",
        ),
        ([*TRAIN, "--workers", "0"], "workers is 0, expected a whole number from 1"),
        ([*TRAIN, "--workers", "3"], "workers is 3, but an update has 2 episodes to share"),
        ([*TRAIN, "--ray-address", "auto"], "--ray-address goes with workers; give --workers N"),
        ([*TRAIN, "--workers", "1", "--controllers", "2"], "synchronous training has one; several"),
        (
            [*TRAIN, "--workers", "1", "--mode", "asynchronous", "--algorithm", "ppo"],
            "algorithm ppo takes several gradient steps from one policy",
        ),
        (
            [*TRAIN[:-2], "--agent", "placeto", "--workers", "1", "--mode", "asynchronous"],
            "placeto imitates a search before it learns",
        ),
        ([*TRAIN, "-o", "fork.json"], "fork.json: cannot be written: File exists"),
        (
            ["train", "--graphs", "nmt", "--cluster", "k80x2", "--grouping", "none", "-o", "run"],
            "groups are too many for an agent",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(placeto, tmp_path, argv, says):
    save_cluster(make_cluster(3, memory=100), Path("trio.yaml"))
    before = sorted(tmp_path.iterdir())
    result = placeto(*argv)
    assert says in result.complaint
    assert result.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
