"""Training runs with real workers, which are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from benchmarks.processes import alive, descendants, ray_workers
from placeto import PlacetoError, save_cluster, save_graph
from placeto.cli import main
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.simulation import simulate_many
from placeto.training import train
from placeto.training.distributed import Scheme, train_with_workers
from tests.training.distributed.problems import TOYS
from tests.training.test_run import assert_every_file_is_whole, content, interrupt_at

CONFIG = Placeto2019Config(
    updates=12, episodes=4, rounds=1, width=4, initial_placement="random", checkpoint_every=2
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run without workers leaves."""
    directory = tmp_path_factory.mktemp("whole")
    train(TOYS, CONFIG, directory)
    return content(directory)


def killing(directory, at, checkpoint_every=2):
    """Watches a run: kills a worker after some updates, and looks at every checkpoint."""
    seen = []

    def watch(report, seconds_left):
        seen.append(report.update)
        saved = directory / "trainer.pt"
        last = torch.load(saved, weights_only=True)["updates"] if saved.exists() else 0
        before = report.update - 1
        assert last == before - before % checkpoint_every
        if report.update in at:
            os.kill(ray_workers()[0], signal.SIGKILL)

    watch.seen = seen
    return watch


def workers_end(seconds=30.0):
    """Whether no worker is left, or soon none: Ray ends those of a controller when it misses it."""
    until = time.monotonic() + seconds
    while (left := ray_workers()) and time.monotonic() < until:
        time.sleep(0.05)
    return not left


@pytest.mark.usefixtures("ray")
def test_a_run_with_a_worker_is_the_run_without(tmp_path, whole):
    """One that is interrupted goes on with or without workers."""
    with pytest.raises(KeyboardInterrupt):
        train_with_workers(TOYS, CONFIG, tmp_path, scheme=Scheme(1), progress=interrupt_at(1 + 5))
    assert workers_end()
    assert torch.load(tmp_path / "trainer.pt", weights_only=True)["updates"] == 5
    with pytest.raises(KeyboardInterrupt):
        train(TOYS, CONFIG, tmp_path, progress=interrupt_at(2))
    train_with_workers(TOYS, CONFIG, tmp_path, scheme=Scheme(1))
    assert_every_file_is_whole(tmp_path)
    assert content(tmp_path) == whole


@pytest.mark.usefixtures("ray")
def test_a_run_whose_workers_are_killed_is_the_run_without(tmp_path, whole):
    lines = []
    watch = killing(tmp_path, at=(3, 8))
    train_with_workers(TOYS, CONFIG, tmp_path, scheme=Scheme(2), progress=lines.append, watch=watch)
    assert sum("died; another took its place" in line for line in lines) == 2
    assert watch.seen == [*range(1, 13)]
    assert content(tmp_path) == whole
    assert workers_end()


@pytest.mark.usefixtures("ray")
def test_an_asynchronous_run_whose_processes_are_killed_finds_the_optimum(tmp_path):
    """Controllers and their workers die; each update is made once. The optimum is 30 ms."""
    config = ColocRLConfig(updates=50, episodes=16, width=8, entropy_bonus=0.1, checkpoint_every=10)
    watch = killing(tmp_path, at=(15, 30), checkpoint_every=10)
    scheme = Scheme(1, "asynchronous", 2)
    trainer = train_with_workers(TOYS[:1], config, tmp_path, scheme=scheme, watch=watch)
    assert watch.seen == [*range(1, 51)]
    assert trainer.episodes == 50 * 16
    assert trainer.best == [pytest.approx(0.03)]
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == watch.seen
    assert {row["controller"] for row in rows} == {0, 1}
    assert max(row["staleness"] for row in rows) > 0
    assert sum(row["step_time"] for row in rows[-5:]) / 5 < 0.033
    with pytest.raises(PlacetoError, match="mode asynchronous, controllers 2, not mode synchr"):
        train(TOYS[:1], replace(config, updates=51), tmp_path)
    assert workers_end()


def pretend(cluster):
    """Measures on no device; Ray's processes import it from here."""
    return simulate_many


COMMAND = (
    *("train", "--graphs", "fork.json", "--cluster", "toy.yaml", "--grouping", "none"),
    *("--agent", "placeto-2019"),
    *("--updates", "12", "--episodes", "4", "--rounds", "1", "--width", "4"),
    *("--initial-placement", "random", "--checkpoint-every", "2", "-o", "run"),
)


@pytest.mark.usefixtures("ray")
def test_a_driver_that_is_killed_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    save_graph(TOYS[0].graph, tmp_path / "fork.json")
    save_cluster(TOYS[0].cluster, tmp_path / "toy.yaml")
    train(TOYS[:1], CONFIG, tmp_path / "alone")
    command = [*COMMAND, "--workers", "1", "--json"]
    alone = [sys.executable, "-m", "placeto", *command]
    with subprocess.Popen(alone, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        metrics = tmp_path / "run" / "metrics.jsonl"
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.001)
        started = descendants(process.pid)
        process.kill()
    assert_every_file_is_whole(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(command) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["updates"] == 12
    assert "starting 1 worker" in said.err
    assert content(tmp_path / "run") == content(tmp_path / "alone")
    # Ray's processes end with the one that started them; its agents try to tell of it for a minute.
    assert any("raylet" in line for line in started.values())
    left = [line for each, line in started.items() if alive(each)]
    assert not [line for line in left if not line.endswith("Agent")]
