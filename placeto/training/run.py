"""Training runs in a directory that can go on from any end; which policy of a run is the best."""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from placeto.heuristics.initial import single_devices
from placeto.models.agent import Teacher, Wanted
from placeto.models.agents import agent_of
from placeto.models.network import Network
from placeto.models.settings import LearningConfig
from placeto.objective import penalised_time
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.units import format_seconds
from placeto.training.directory import STATE, Log, RunDirectory, identity_of
from placeto.training.trainer import Trainer, UpdateReport

Watch = Callable[[UpdateReport, float], None]


@dataclass(frozen=True)
class Validated:
    """How good the policy of one checkpoint is.

    Of each problem there is a ratio: penalised step time of what a greedy episode finds, over that
    of the best single device.
    """

    updates: int  # of the run, when it was the policy
    ratio: float  # geometric mean of `ratios`
    ratios: tuple[float, ...]


class Validation:
    """Greedy episodes on problems that a run is not trained on; keeps the best policy.

    Args:
        problems: on which to compare policies.
        config: of the run.
        evaluate: turns placements into step times.
        policy: of the run.

    Raises:
        PlacetoError: the policy's network does not fit these problems.

    Attributes:
        updates: of the run when its policy was last validated; 0 before that.
        best: of the policies validated so far the first that none is better than.
        history: number of updates and geometric mean of each.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        evaluate: Evaluator,
        policy: Network,
    ) -> None:
        self.updates = 0
        self.best: Validated | None = None
        self.history: list[tuple[int, float]] = []
        self._problems = problems
        self._config = config
        self._best_weights: dict[str, Any] = {}
        with torch.random.fork_rng():
            self._agent = agent_of(config).make(problems, config, evaluate)
        try:
            self._agent.network.load_state_dict(policy.state_dict())
        except RuntimeError as error:
            raise PlacetoError(
                f"{problems[0].graph.name} on {problems[0].cluster.name}: the network in training "
                "is of another size, so that this is no problem to validate it on"
            ) from error
        # Penalised step times of the best single devices, in seconds.
        self._single: list[float] = []
        for problem in problems:
            outcomes = evaluate(problem, single_devices(problem))
            costs = penalised_time(problem, outcomes, config.memory_penalty)
            self._single.append(float(costs.min()))

    def due(self, updates: int) -> bool:
        """Whether the policy after so many updates is one to validate, and has not been."""
        last = updates == self._config.updates
        return updates != self.updates and (last or updates % self._config.checkpoint_every == 0)

    def check(self, policy: Network, updates: int) -> Validated:
        """Finds how good the run's policy is after some updates; keeps it if it is the best."""
        ratios = self.ratios(policy)
        mean = float(np.exp(np.mean(np.log(ratios))))
        validated = Validated(updates, mean, ratios)
        if self.best is None or mean < self.best.ratio:
            self._best_weights = copy.deepcopy(policy.state_dict())
            self.best = validated
        self.history.append((updates, mean))
        self.updates = updates
        return validated

    def ratios(self, policy: Network) -> tuple[float, ...]:
        """How good a policy is on each problem; see `Validated`."""
        self._agent.network.load_state_dict(policy.state_dict())
        rng = np.random.default_rng(self._config.seed)
        costs = [
            float(self._agent.roll_out(Wanted(index, 1, greedy=True), rng).best_cost[0])
            for index in range(len(self._problems))
        ]
        return tuple(np.divide(costs, self._single).tolist())

    def best_policy(self) -> Network:
        """A network with the weights of the best policy so far."""
        self._agent.network.load_state_dict(self._best_weights)
        return self._agent.network

    def card(self) -> dict[str, Any]:
        """What `policy.json` says of the best policy so far."""
        assert self.best is not None
        rows = [
            {"graph": problem.graph.name, "cluster": problem.cluster.name, "ratio": ratio}
            for problem, ratio in zip(self._problems, self.best.ratios, strict=True)
        ]
        return {"ratio": self.best.ratio, "problems": rows, "history": self.history}

    def state(self) -> dict[str, Any]:
        """All that another one for the same problems needs to go on just as this one would."""
        return {
            "updates": self.updates,
            "best": None if self.best is None else asdict(self.best),
            "weights": self._best_weights,
            "history": list(self.history),
        }

    def restore(self, state: Any) -> None:
        """Goes on from a state.

        Raises:
            PlacetoError: it is none.
        """
        try:
            self.updates, self._best_weights = state["updates"], state["weights"]
            self.best = None if state["best"] is None else Validated(**state["best"])
            self.history = list(state["history"])
        except (LookupError, TypeError) as error:
            raise PlacetoError(f"the resume state does not fit this run: {error}") from error


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
    if (state := folder.state()) is None:
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
