"""`placeto train`."""

import json

import pytest

from placeto.training import TrainingConfig, load_policy

TRAIN = (
    *("train", "--graphs", "fork.json", "--cluster", "duo.yaml", "--grouping", "none", "-o", "run"),
    *("--updates", "3", "--episodes", "2", "--rounds", "1"),
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


def test_text_says_where_the_run_is_and_stdout_is_empty(placeto):
    result = placeto(*TRAIN)
    assert (result.status, result.out) == (0, "")
    assert result.err.startswith("train: episode 2: by hand mean ")
    assert "best" in result.err
    assert "entropy" in result.err
    assert "left" in result.err


def test_settings_reach_the_run(placeto, tmp_path):
    options = {"seed": 3, "learning_rate": 0.25, "passing": "sweep", "traversal": "random"}
    flags = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    assert placeto(*TRAIN, *[flag.replace("_", "-") for flag in flags]).status == 0
    document = json.loads((tmp_path / "run" / "config.json").read_text())["training"]
    given = {"updates": 3, "episodes": 2, "rounds": 1} | options
    assert document == TrainingConfig(**given).to_document()


def test_the_same_command_goes_on(placeto, tmp_path):
    first = placeto(*TRAIN, "--json")
    before = (tmp_path / "run" / "policy.safetensors").read_bytes()
    assert placeto(*TRAIN, "--json").document == first.document
    assert (tmp_path / "run" / "policy.safetensors").read_bytes() == before


def test_a_run_on_two_graphs(placeto):
    argv = ("train", "--graphs", "nmt", "inception_v3", "--cluster", "k80x2", "--grouping", "6")
    result = placeto(*argv, "-o", "run", "--updates", "2", "--episodes", "2", "--json")
    assert set(result.document["best_step_time"]) == {"nmt", "inception_v3"}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["train"], "missing from placeto train"),
        (["train", "--graphs", "nmt", "--cluster", "k80x2"], "-o DIR"),
        (["train", "--graphs", "--cluster", "k80x2", "-o", "run"], "no problem to train on"),
        ([*TRAIN, "--graphs", "mnt"], "mnt: no such file, and no bundled name"),
        ([*TRAIN, "--cluster", "k80x3"], "k80x3: no such file, and no bundled name"),
        ([*TRAIN, "--grouping", "0"], "grouping is 0, expected at least 1 group"),
        ([*TRAIN, "--updates", "0"], "updates is 0, expected a whole number from 1"),
        ([*TRAIN, "--updates", "x"], "invalid literal for int()"),
        ([*TRAIN, "--seed", "-1"], "seed is -1, expected a whole number from 0"),
        ([*TRAIN, "--seed", str(2**70)], "expected a whole number from 0, below"),
        ([*TRAIN, "--learning-rate", "nan"], "learning_rate is nan, expected more than 0"),
        ([*TRAIN, "--passing", "gat"], "--passing"),
        ([*TRAIN, "--updtes", "3"], "perhaps you meant: --updates"),
        ([*TRAIN, "-o", "fork.json"], "fork.json: cannot be written: File exists"),
        (
            ["train", "--graphs", "nmt", "--cluster", "k80x2", "--grouping", "none", "-o", "run"],
            "groups are too many for an agent",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(placeto, tmp_path, argv, says):
    before = sorted(tmp_path.iterdir())
    result = placeto(*argv)
    assert says in result.complaint
    assert result.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
