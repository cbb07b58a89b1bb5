"""Run directories: going on from any end is the same as not stopping."""

import contextlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from safetensors.torch import load as load_tensors

from placeto import PlacetoError
from placeto.cli import main
from placeto.envs import generator
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.training import Trainer, load_policy, train

CONFIG = Placeto2019Config(
    updates=6, episodes=4, rounds=1, width=4, initial_placement="random", checkpoint_every=2
)
PROBLEMS = [generator.fork(), generator.diamond()]


class Killed(BaseException):
    """What no handler of the program knows."""


def content(directory):
    """All that a run says, but how fast it was."""
    metrics = metrics_of(directory)
    for line in metrics:
        assert line.pop("steps_per_second") > 0
    state = torch.load(directory / "trainer.pt", weights_only=True)
    return {
        "metrics": metrics,
        "state": plain(state),
        "policy": (directory / "policy.safetensors").read_bytes(),
        "card": json.loads((directory / "policy.json").read_bytes()),
        "config": json.loads((directory / "config.json").read_bytes()),
    }


def metrics_of(directory):
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value


def assert_every_file_is_whole(directory):
    """Before the first checkpoint there may be no policy, but never half of one."""
    for path in directory.iterdir():
        if path.name.startswith("."):
            continue  # a temporary name, that nobody reads
        data = path.read_bytes()
        if path.suffix == ".json":
            assert isinstance(json.loads(data), dict)
        elif path.suffix == ".jsonl":
            whole = data[: data.rfind(b"\n") + 1].splitlines()
            assert [json.loads(line)["update"] for line in whole] == [*range(1, len(whole) + 1)]
        elif path.suffix == ".safetensors":
            assert load_tensors(data)
        elif path.suffix == ".pt":
            assert torch.load(path, weights_only=True)["updates"] > 0
        else:
            assert path.name.startswith("events.out.tfevents.")
    if (directory / "policy.json").exists():
        load_policy(directory)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the run is that nothing stopped."""
    directory = tmp_path_factory.mktemp("whole")
    trainer = train(PROBLEMS, CONFIG, directory)
    assert trainer.updates == 6
    assert_every_file_is_whole(directory)
    return content(directory)


def interrupt_at(update):
    """A progress that meets Ctrl-C after an update."""

    def progress(message):
        progress.calls += 1
        if progress.calls == update:
            raise KeyboardInterrupt

    progress.calls = 0
    return progress


def test_metrics_tell_of_every_update(whole):
    assert [line["update"] for line in whole["metrics"]] == [1, 2, 3, 4, 5, 6]
    assert [line["graph"] for line in whole["metrics"]] == ["fork", "diamond"] * 3
    assert whole["metrics"][-1]["evaluations"] == whole["state"]["evaluations"]
    assert whole["card"]["updates"] == 6
    assert whole["config"]["training"] == CONFIG.to_document()


@pytest.mark.parametrize("update", [1, 2, 3, 5])
def test_a_run_that_is_continued_is_the_run_that_was_not_stopped(tmp_path, whole, update):
    with pytest.raises(KeyboardInterrupt):
        train(PROBLEMS, CONFIG, tmp_path, progress=interrupt_at(update))
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == update
    assert torch.load(tmp_path / "trainer.pt", weights_only=True)["updates"] == update
    assert_every_file_is_whole(tmp_path)
    train(PROBLEMS, CONFIG, tmp_path)
    assert content(tmp_path) == whole


@pytest.mark.parametrize("where", ["rollout", "optimizer", "report"])
def test_an_interrupt_inside_an_update_undoes_that_update(tmp_path, whole, monkeypatch, where):
    with monkeypatch.context() as patch:
        if where == "rollout":
            stop_after(patch, "placeto.models.placeto_2019.agent.Placeto2019Agent.roll_out", 4)
        elif where == "optimizer":  # weights are changed, counters are not
            stop_after(patch, "torch.optim.Adam.step", 4)
        else:  # the update is over, its metrics are not written
            stop_after(patch, "placeto.training.trainer.Trainer.step", 4)
        with pytest.raises(KeyboardInterrupt):
            train(PROBLEMS, CONFIG, tmp_path)
    assert torch.load(tmp_path / "trainer.pt", weights_only=True)["updates"] == 3
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 3
    train(PROBLEMS, CONFIG, tmp_path)
    assert content(tmp_path) == whole


def stop_after(patch, target, call, error=KeyboardInterrupt):
    """Makes the `call`th call of a function be interrupted when it has done its work."""
    module, _, name = target.rpartition(".")
    owner = pkgutil.resolve_name(module)
    original, calls = getattr(owner, name), []

    def stopped(*arguments, **keywords):
        result = original(*arguments, **keywords)
        calls.append(1)
        if len(calls) == call:
            raise error
        return result

    patch.setattr(owner, name, stopped)


def kills_survived(folder, run, whole, monkeypatch):
    """Kills a run at its first write, its second, …: how often, until it writes no more.

    A kill is as if the process were gone: from then on nothing is written. What the run is then
    continued to has to be `whole`.
    """
    replace = os.replace
    kill = 0
    while True:
        kill += 1
        directory = folder / str(kill)
        writes = []

        def killed(source, target, *, kill=kill, writes=writes):
            writes.append(target)
            if len(writes) >= kill:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr("os.replace", killed)
            with contextlib.suppress(Killed):
                run(directory)
        assert_every_file_is_whole(directory)
        if len(writes) < kill:
            return kill - 1
        run(directory)
        assert content(directory) == whole


def test_a_kill_between_any_two_writes(tmp_path, whole, monkeypatch):
    kills = kills_survived(
        tmp_path, lambda folder: train(PROBLEMS, CONFIG, folder), whole, monkeypatch
    )
    # config.json, and three files at each of three checkpoints and at the end
    assert kills == 1 + 3 * 4


def test_a_run_that_is_over_is_left_as_it_is(tmp_path):
    train(PROBLEMS, CONFIG, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    trainer = train(PROBLEMS, CONFIG, tmp_path)
    assert trainer.updates == 6
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    train(PROBLEMS, CONFIG, tmp_path)
    longer = Placeto2019Config(**CONFIG.to_document() | {"updates": 8})
    assert train(PROBLEMS, longer, tmp_path).updates == 8
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 8
    assert json.loads((tmp_path / "config.json").read_text())["training"]["updates"] == 8


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("trainer.pt", b"", "broken resume state"),
        ("trainer.pt", b"no checkpoint at all", "broken resume state"),
        ("trainer.pt", None, "broken resume state"),
        ("config.json", b"{", "not valid JSON"),
        ("config.json", b"{}", "holds a run on other graphs"),
    ],
)
def test_broken_files_are_one_line(tmp_path, name, data, says):
    train(PROBLEMS, CONFIG, tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-200] if data is None else data)
    with pytest.raises(PlacetoError, match=says) as error:
        train(PROBLEMS, CONFIG, tmp_path)
    assert str(path) in str(error.value) or str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_policy_of_a_run_is_the_trained_one(tmp_path):
    trainer = train(PROBLEMS, CONFIG, tmp_path)
    policy = load_policy(tmp_path)
    assert policy.config == trainer.policy.config
    for name, tensor in trainer.policy.state_dict().items():
        assert torch.equal(policy.state_dict()[name], tensor)


def test_events_are_those_of_the_metrics(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    with pytest.raises(KeyboardInterrupt):
        train(PROBLEMS, CONFIG, tmp_path, progress=interrupt_at(3))
    train(PROBLEMS, CONFIG, tmp_path)
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2
    events = accumulator(str(tmp_path)).Reload()
    metrics = metrics_of(tmp_path)
    for graph in ("fork", "diamond"):
        lines = [line for line in metrics if line["graph"] == graph]
        for name in (
            *("step_time", "best_step_time", "entropy", "gradient_norm", "steps_per_second"),
            *("mean_return", "learning_rate"),
        ):
            scalars = events.Scalars(f"{graph}/{name}")
            assert [event.step for event in scalars] == [line["update"] for line in lines]
            assert [event.value for event in scalars] == pytest.approx(
                [line[name] for line in lines], rel=1e-6
            )


def test_events_are_written_where_ctrl_c_is_not_met(tmp_path, monkeypatch):
    """Python raises it in the main thread; a queue that it cuts short may never end."""
    writer = pytest.importorskip("tensorboardX").SummaryWriter
    threads = []
    for name in ("add_scalar", "flush", "close"):
        monkeypatch.setattr(
            writer, name, lambda *_: threads.append(threading.current_thread()), raising=True
        )
    train(PROBLEMS, CONFIG, tmp_path)
    assert len(set(threads)) == 1
    assert threads[0] is not threading.main_thread()


COMMAND = (
    *("train", "--graphs", "nmt", "--cluster", "k80x2", "--grouping", "12", "--updates", "40"),
    *("--episodes", "4", "--rounds", "1", "--width", "4", "--checkpoint-every", "1", "-o", "run"),
)


def start(folder):
    # Where the tests run in the background of a shell, Ctrl-C is ignored, and a child would inherit
    # that; it does not inherit a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "placeto", *COMMAND],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_update(process, folder, update):
    """Returns as soon as the metrics tell of an update."""
    metrics = folder / "run" / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < update:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)


def test_a_command_that_is_killed_and_then_interrupted(tmp_path, monkeypatch):
    """A kill leaves whole files, Ctrl-C a checkpoint; in the end the run is what it is anyway."""
    with start(tmp_path) as process:
        wait_for_update(process, tmp_path, 5)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert_every_file_is_whole(tmp_path / "run")
    with start(tmp_path) as process:
        wait_for_update(process, tmp_path, 12)
        process.send_signal(signal.SIGINT)
        complaint = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in complaint
    assert "interrupted; the same command goes on from the checkpoint in run" in complaint
    assert_every_file_is_whole(tmp_path / "run")
    updates = torch.load(tmp_path / "run" / "trainer.pt", weights_only=True)["updates"]
    assert 11 <= updates < 40
    (tmp_path / "whole").mkdir()
    for folder in (tmp_path, tmp_path / "whole"):
        monkeypatch.chdir(folder)
        assert main(COMMAND) == 0
    assert content(tmp_path / "run") == content(tmp_path / "whole" / "run")


def test_a_trainer_by_hand_is_the_run(whole):
    trainer = Trainer(PROBLEMS, CONFIG)
    for _ in range(6):
        trainer.step()
    assert plain(trainer.state()) == whole["state"]
