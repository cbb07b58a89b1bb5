"""Training runs: a directory that a run fills, and goes on from after any end."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from placeto import cluster as clusters
from placeto import graph as graphs
from placeto.errors import PlacetoError
from placeto.files import read_json, write_bytes
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.training.checkpoint import (
    load_state,
    remove_leftovers,
    save_policy,
    save_state,
    write_document,
)
from placeto.training.config import LearningConfig
from placeto.training.events import event_log
from placeto.training.trainer import Trainer, UpdateReport
from placeto.units import format_seconds

Progress = Callable[[str], None]

# What settings are in runs from before there was a choice.
ONLY_CHOICE = {
    **{"baseline": "recent", "baseline_decay": 0.9},
    **{"algorithm": "reinforce", "epochs": 4, "clip": 0.2},
}


def train(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    directory: str | Path,
    *,
    progress: Progress = lambda message: None,
    evaluate: Evaluator = simulate_many,
) -> Trainer:
    """Trains a policy in a run directory, or goes on with the run that is in it.

    The directory holds `config.json`, `metrics.jsonl` (a line an update), TensorBoard events (if
    tensorboard is installed), `policy.safetensors` with `policy.json`, and `trainer.pt`. What is
    not appended to is replaced whole, so that a kill at any moment leaves the last checkpoint, and
    a run that is continued ends as one that was never stopped.

    Args:
        problems: what to train on, graphs of different names.
        config: how; `updates` may be changed when a run is continued (the schedules then follow
            the changed number), all else must be the same.
        directory: made if it is not there.
        progress: told of every update, in a line.
        evaluate: turns placements into step times.

    Returns:
        The trainer at the end of the run.

    Raises:
        PlacetoError: the directory cannot be used, or holds another run.
        KeyboardInterrupt: after the state of the last whole update was written.
    """
    directory = Path(directory)
    trainer = Trainer(problems, config, evaluate)
    resolved = _resolved(problems, config)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _check_same_run(directory, resolved)
        state = load_state(directory)
        if state is not None:
            trainer.restore(state)
        if trainer.updates < config.updates:
            remove_leftovers(directory)
            write_document(directory / "config.json", resolved)
            _run(trainer, directory, resolved, progress)
    except OSError as error:
        raise PlacetoError(f"{directory}: cannot be written: {error.strerror}") from error
    return trainer


def progress_line(report: UpdateReport, seconds_left: float) -> str:
    """What a person wants to know of a run: episodes, step times, time left."""
    minutes, seconds = divmod(round(max(seconds_left, 0)), 60)
    return (
        f"episode {report.episodes}: {report.graph} mean {format_seconds(report.step_time)}, "
        f"best {format_seconds(report.best_step_time)}, entropy {report.entropy:.2f}, "
        f"{minutes}:{seconds:02d} left"
    )


def _run(trainer: Trainer, directory: Path, resolved: dict[str, Any], progress: Progress) -> None:
    """Trains to the last update; leaves a checkpoint, whatever ends it."""
    config, path = trainer.config, directory / "metrics.jsonl"
    _cut(path, trainer.updates)
    began, done = time.monotonic(), trainer.updates
    state = trainer.state()
    try:
        with path.open("a") as metrics, event_log(directory, done + 1) as log:
            while trainer.updates < config.updates:
                report = trainer.step()
                values = asdict(report)
                metrics.write(json.dumps(values) + "\n")
                metrics.flush()
                scalars = {key: values[key] for key in values if isinstance(values[key], float)}
                log(report.update, {f"{report.graph}/{key}": scalars[key] for key in scalars})
                state = trainer.state()
                each = (time.monotonic() - began) / (trainer.updates - done)
                progress(progress_line(report, each * (config.updates - trainer.updates)))
                if trainer.updates % config.checkpoint_every == 0:
                    _checkpoint(directory, trainer, state, resolved)
    finally:
        # An interrupt leaves the trainer anywhere in an update; `state` is of the last whole one.
        trainer.restore(state)
        _checkpoint(directory, trainer, state, resolved)
        _cut(path, trainer.updates)


def _resolved(problems: Sequence[PlacementProblem], config: LearningConfig) -> dict[str, Any]:
    names = [problem.graph.name for problem in problems]
    for name in names:
        if names.count(name) > 1:
            raise PlacetoError(f"two graphs are called {name!r}; names must be unique")
    described = [
        {
            "graph": problem.graph.name,
            "cluster": problem.cluster.name,
            "ops": problem.graph.num_ops,
            "groups": problem.num_groups,
            "devices": problem.num_devices,
            "digest": _digest(problem),
        }
        for problem in problems
    ]
    return {"problems": described, "training": config.to_document()}


def _digest(problem: PlacementProblem) -> str:
    """A number that is another for another problem, were its names and sizes the same."""
    documents = [graphs.to_document(problem.graph), clusters.to_document(problem.cluster)]
    parts = [json.dumps(documents).encode(), problem.op_group.tobytes(), problem.allowed.tobytes()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _check_same_run(directory: Path, resolved: dict[str, Any]) -> None:
    """Makes sure that what the directory holds, if anything, is a checkpoint of this run."""
    path = directory / "config.json"
    if not path.exists():
        for name in ("trainer.pt", "policy.json", "metrics.jsonl"):
            if (directory / name).exists():
                raise PlacetoError(
                    f"{directory}: holds {name} but no config.json, so no run to go on with; "
                    "give another directory"
                )
        return
    before = read_json(path)
    if before.get("problems") != resolved["problems"]:
        raise PlacetoError(
            f"{directory}: holds a run on other graphs, another grouping or another cluster; "
            "give the same, or another directory"
        )
    old, new = before.get("training"), resolved["training"]
    if not isinstance(old, dict):
        raise PlacetoError(f"{path}: training is {old!r}, expected the settings of a run")
    old = ONLY_CHOICE | old
    for key in new:
        if key != "updates" and old.get(key) != new[key]:
            raise PlacetoError(
                f"{directory}: holds a run with {key} = {old.get(key)!r}, not {new[key]!r}; "
                "give the same, or another directory"
            )


def _checkpoint(
    directory: Path, trainer: Trainer, state: dict[str, Any], resolved: dict[str, Any]
) -> None:
    save_policy(directory, trainer.policy, resolved | {"updates": trainer.updates})
    save_state(directory, state)


def _cut(metrics: Path, updates: int) -> None:
    """Leaves the metrics of the first `updates` updates: later ones are made again."""
    lines = metrics.read_bytes().splitlines(keepends=True) if metrics.exists() else []
    if len(lines) > updates:
        write_bytes(metrics, b"".join(lines[:updates]))
