"""Training runs: a directory that a run fills, and goes on from after any end."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from placeto import cluster as clusters
from placeto import graph as graphs
from placeto.models.agent import Teacher
from placeto.models.settings import LearningConfig
from placeto.models.stored import save_policy, write_document
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json, write_bytes
from placeto.support.units import format_seconds
from placeto.training.checkpoint import load_state, remove_leftovers, save_state
from placeto.training.events import Log, event_log
from placeto.training.trainer import Trainer, UpdateReport
from placeto.training.validation import Validation

Progress = Callable[[str], None]
Watch = Callable[[UpdateReport, float], None]

NO_SCHEME: Mapping[str, Any] = {}


def train(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    directory: str | Path,
    *,
    validation: Sequence[PlacementProblem] = (),
    progress: Progress = lambda message: None,
    watch: Watch | None = None,
    evaluate: Evaluator = simulate_many,
    teacher: Teacher | None = None,
    make_trainer: Callable[..., Trainer] = Trainer,
    scheme: Mapping[str, Any] = NO_SCHEME,
) -> Trainer:
    """Trains a policy in a run directory, or goes on with the run that is in it.

    The directory holds `config.json`, `metrics.jsonl` (a line an update), TensorBoard events (if
    tensorboard is installed), `policy.safetensors` with `policy.json`, and `trainer.pt`. What is
    not appended to is replaced whole, so that a kill at any moment leaves the last checkpoint, and
    a run that is continued ends as one that was never stopped.

    With problems to validate on, `policy.safetensors` holds the best policy by them of every
    `checkpoint_every` updates and of the end, and `policy.json` how good it is (`validated`);
    without, the last policy.

    Args:
        problems: what to train on; on one cluster, graphs of different names.
        config: how; `updates` may be changed when a run is continued (the schedules then follow
            the changed number), all else must be the same.
        directory: made if it is not there.
        validation: what to choose the policy by: greedy episodes, geometric mean of step time over
            that of the best single device.
        progress: told of every update, in a line, and of what else happens.
        watch: told of every update instead: its report, and how many seconds are left.
        evaluate: turns placements into step times.
        teacher: gives the placements that agents which imitate begin with.
        make_trainer: makes the trainer, with what `Trainer` takes.
        scheme: what else names the run: how its work is shared, where the result depends on that.

    Returns:
        The trainer at the end of the run, with the last policy.

    Raises:
        PlacetoError: the directory cannot be used, or holds another run; the policy does not fit
            what it should be validated on.
        KeyboardInterrupt: after the state of the last whole update was written.
    """
    directory = Path(directory)
    trainer = make_trainer(problems, config, evaluate, teacher=teacher)
    resolved = _resolved(problems, config, validation) | dict(scheme)
    validator = None
    if validation:
        validator = Validation(validation, config, evaluate, trainer.policy)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _check_same_run(directory, resolved)
        state = load_state(directory)
        if state is not None:
            _restore(directory, trainer, validator, state)
        if trainer.updates < config.updates or _due(trainer, validator):
            remove_leftovers(directory)
            write_document(directory / "config.json", resolved)
            _run(trainer, validator, directory, resolved, progress, watch)
    except OSError as error:
        raise PlacetoError(f"{directory}: cannot be written: {error.strerror}") from error
    return trainer


def _restore(
    directory: Path, trainer: Trainer, validator: Validation | None, state: dict[str, Any]
) -> None:
    try:
        trainer.restore(state)
        if validator is not None:
            validator.restore(state.get("validation"))
    except PlacetoError as error:
        raise PlacetoError(
            f"{directory / 'trainer.pt'}: {error}; give another directory to start anew"
        ) from error


def progress_line(report: UpdateReport, seconds_left: float) -> str:
    """What a person wants to know of a run: episodes, step times, time left."""
    minutes, seconds = divmod(round(max(seconds_left, 0)), 60)
    return (
        f"episode {report.episodes}: {report.graph} mean {format_seconds(report.step_time)}, "
        f"best {format_seconds(report.best_step_time)}, entropy {report.entropy:.2f}, "
        f"{minutes}:{seconds:02d} left"
    )


def _run(
    trainer: Trainer,
    validator: Validation | None,
    directory: Path,
    resolved: dict[str, Any],
    progress: Progress,
    watch: Watch | None,
) -> None:
    """Trains to the last update; leaves a checkpoint, whatever ends it."""
    config, path = trainer.config, directory / "metrics.jsonl"
    _cut(path, trainer.updates)
    began, done = time.monotonic(), trainer.updates
    names = _tags(trainer.problems)
    state = trainer.state()
    try:
        with path.open("a") as metrics, event_log(directory, done + 1) as log:
            # An earlier part of the run may have ended while it was validated.
            _validate(trainer, validator, progress, log)
            while trainer.updates < config.updates:
                report = trainer.step()
                values = asdict(report)
                metrics.write(json.dumps(values) + "\n")
                metrics.flush()
                scalars = {key: values[key] for key in values if isinstance(values[key], float)}
                tag = names[report.graph, report.cluster]
                log(report.update, {f"{tag}/{key}": scalars[key] for key in scalars})
                state = trainer.state()
                each = (time.monotonic() - began) / (trainer.updates - done)
                left = each * (config.updates - trainer.updates)
                if watch is None:
                    progress(progress_line(report, left))
                else:
                    watch(report, left)
                _validate(trainer, validator, progress, log)
                if trainer.updates % config.checkpoint_every == 0:
                    _checkpoint(directory, trainer, validator, state, resolved)
    finally:
        # An interrupt leaves the trainer anywhere in an update; `state` is of the last whole one.
        trainer.restore(state)
        _checkpoint(directory, trainer, validator, state, resolved)
        _cut(path, trainer.updates)


def _tags(problems: Sequence[PlacementProblem]) -> dict[tuple[str, str], str]:
    """What events of a problem are called: by its graph; and its cluster if there are several."""
    pairs = [(problem.graph.name, problem.cluster.name) for problem in problems]
    several = len({cluster for _, cluster in pairs}) > 1
    return {pair: "/".join(pair) if several else pair[0] for pair in pairs}


def _due(trainer: Trainer, validator: Validation | None) -> bool:
    """Whether the policy is one to validate, and has not been."""
    if validator is None or trainer.updates == validator.updates:
        return False
    config = trainer.config
    return trainer.updates % config.checkpoint_every == 0 or trainer.updates == config.updates


def _validate(trainer: Trainer, validator: Validation | None, progress: Progress, log: Log) -> None:
    if validator is None or not _due(trainer, validator):
        return
    found = validator.check(trainer.policy, trainer.updates)
    log(found.updates, {"validation/ratio": found.ratio})
    assert validator.best is not None
    progress(
        f"update {found.updates}: {found.ratio:.4f} of one device on {len(found.ratios)} "
        f"validation problems; best {validator.best.ratio:.4f} at update {validator.best.updates}"
    )


def _resolved(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    validation: Sequence[PlacementProblem],
) -> dict[str, Any]:
    """What names a run; `validation` only where there is some."""
    chosen_by = {"validation": _described(validation)} if validation else {}
    return {"problems": _described(problems), **chosen_by, "training": config.to_document()}


def _described(problems: Sequence[PlacementProblem]) -> list[dict[str, Any]]:
    names = [(problem.graph.name, problem.cluster.name) for problem in problems]
    for graph, cluster in names:
        if names.count((graph, cluster)) > 1:
            raise PlacetoError(
                f"two graphs are called {graph!r} on cluster {cluster!r}; names must be unique"
            )
    return [
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
    card = directory / "policy.json"
    if card.exists() and not (directory / "trainer.pt").exists():
        # A kill between the two files of the first checkpoint leaves this, too.
        updates = read_json(card).get("updates")
        if not isinstance(updates, int) or updates > resolved["training"]["checkpoint_every"]:
            raise PlacetoError(
                f"{directory}: holds a policy but no trainer.pt to go on from, and would lose it; "
                "give another directory"
            )
    if before.get("problems") != resolved["problems"]:
        raise PlacetoError(
            f"{directory}: holds a run on other graphs, another grouping or another cluster; "
            "give the same, or another directory"
        )
    if before.get("validation") != resolved.get("validation"):
        raise PlacetoError(
            f"{directory}: holds a run with other validation graphs; give the same, or another "
            "directory"
        )
    if before.get("scheme") != resolved.get("scheme"):
        raise PlacetoError(
            f"{directory}: holds a run with {_said(before)}, not {_said(resolved)}; give the same, "
            "or another directory"
        )
    old, new = before.get("training"), resolved["training"]
    if not isinstance(old, dict):
        raise PlacetoError(f"{path}: training is {old!r}, expected the settings of a run")
    for key in new:
        if key != "updates" and old.get(key) != new[key]:
            raise PlacetoError(
                f"{directory}: holds a run with {key} = {old.get(key)!r}, not {new[key]!r}; "
                "give the same, or another directory"
            )


def _said(resolved: Mapping[str, Any]) -> str:
    scheme = resolved.get("scheme") or {"mode": "synchronous"}
    return ", ".join(f"{key} {value}" for key, value in scheme.items())


def _checkpoint(
    directory: Path,
    trainer: Trainer,
    validator: Validation | None,
    state: dict[str, Any],
    resolved: dict[str, Any],
) -> None:
    if validator is None or validator.best is None:
        save_policy(directory, trainer.policy, resolved | {"updates": trainer.updates})
    else:
        card = {"updates": validator.best.updates, "validated": validator.card()}
        save_policy(directory, validator.best_policy(), resolved | card)
    if validator is not None:
        state = state | {"validation": validator.state()}
    save_state(directory, state)


def _cut(metrics: Path, updates: int) -> None:
    """Leaves the metrics of the first `updates` updates: later ones are made again."""
    lines = metrics.read_bytes().splitlines(keepends=True) if metrics.exists() else []
    if len(lines) > updates:
        write_bytes(metrics, b"".join(lines[:updates]))
