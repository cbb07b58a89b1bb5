"""Training runs in a directory that can go on from any end."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from placeto.models.agent import Teacher
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.units import format_seconds
from placeto.training.directory import STATE, Log, RunDirectory, identity_of
from placeto.training.trainer import Trainer, UpdateReport
from placeto.training.validation import Validation

Watch = Callable[[UpdateReport, float], None]


def train(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    directory: str | Path,
    *,
    validation: Sequence[PlacementProblem] = (),
    progress: Progress = silent,
    watch: Watch | None = None,
    evaluate: Evaluator = simulate_many,
    teacher: Teacher | None = None,
    make_trainer: Callable[..., Trainer] = Trainer,
    scheme: Mapping[str, Any] | None = None,
) -> Trainer:
    """Trains a policy in a run directory, or goes on with the run that is in it.

    For what the directory holds see `RunDirectory`. A run that is continued ends as one that was
    never stopped.

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
    trainer = make_trainer(problems, config, evaluate, teacher=teacher)
    run = identity_of(problems, config, validation) | dict(scheme or {})
    validator = Validation(validation, config, evaluate, trainer.policy) if validation else None
    try:
        folder = RunDirectory(Path(directory), run)
        _restore(folder, trainer, validator)
        if trainer.updates < config.updates or (validator and validator.due(trainer.updates)):
            watch = watch or (lambda report, left: progress(progress_line(report, left)))
            _run(trainer, validator, folder, progress, watch)
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


def _run(
    trainer: Trainer,
    validator: Validation | None,
    folder: RunDirectory,
    progress: Progress,
    watch: Watch,
) -> None:
    """Trains to the last update; leaves a checkpoint, whatever ends it."""
    config, done, began = trainer.config, trainer.updates, time.monotonic()
    state = trainer.state()
    try:
        with folder.open(done) as (write, log):
            # An earlier part of the run may have ended while it was validated.
            _validate(trainer, validator, progress, log)
            while trainer.updates < config.updates:
                report = trainer.step()
                write(report)
                state = trainer.state()
                each = (time.monotonic() - began) / (trainer.updates - done)
                watch(report, each * (config.updates - trainer.updates))
                _validate(trainer, validator, progress, log)
                if trainer.updates % config.checkpoint_every == 0:
                    _save(folder, trainer, validator, state)
    finally:
        # An interrupt leaves the trainer anywhere in an update; `state` is of the last whole one.
        trainer.restore(state)
        _save(folder, trainer, validator, state)
        folder.cut(trainer.updates)


def _restore(folder: RunDirectory, trainer: Trainer, validator: Validation | None) -> None:
    state = folder.state()
    if state is None:
        return
    try:
        trainer.restore(state)
        if validator is not None:
            validator.restore(state.get("validation"))
    except PlacetoError as error:
        raise PlacetoError(
            f"{folder.path / STATE}: {error}; give another directory to start anew"
        ) from error


def _save(
    folder: RunDirectory, trainer: Trainer, validator: Validation | None, state: dict[str, Any]
) -> None:
    """A checkpoint of the run, with the policy that it has to show."""
    if validator is not None:
        state = state | {"validation": validator.state()}
    if validator is None or validator.best is None:
        folder.save(state, trainer.policy, {"updates": trainer.updates})
    else:
        card = {"updates": validator.best.updates, "validated": validator.card()}
        folder.save(state, validator.best_policy(), card)


def _validate(trainer: Trainer, validator: Validation | None, progress: Progress, log: Log) -> None:
    if validator is None or not validator.due(trainer.updates):
        return
    found = validator.check(trainer.policy, trainer.updates)
    log(found.updates, {"validation/ratio": found.ratio})
    assert validator.best is not None
    progress(
        f"update {found.updates}: {found.ratio:.4f} of one device on {len(found.ratios)} "
        f"validation problems; best {validator.best.ratio:.4f} at update {validator.best.updates}"
    )
