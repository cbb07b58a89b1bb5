"""Training runs whose work is shared among processes, on this machine or on many."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from placeto.cluster import Cluster
from placeto.models.agent import Teacher
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.crew import Crew, one_a_node
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.ray_session import ray_session
from placeto.training.distributed.asynchronous import AsynchronousTrainer
from placeto.training.distributed.controller import start_controller
from placeto.training.distributed.player import Player
from placeto.training.distributed.scheme import Scheme
from placeto.training.distributed.synchronous import SynchronousTrainer
from placeto.training.run import Watch, train
from placeto.training.trainer import Trainer


def train_with_workers(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    directory: str | Path,
    *,
    scheme: Scheme,
    validation: Sequence[PlacementProblem] = (),
    progress: Progress = silent,
    watch: Watch | None = None,
    teacher: Teacher | None = None,
) -> Trainer:
    """Trains as `train` does, with rollout workers that are Ray's.

    Synchronous training leaves what `train` leaves, whatever the number of workers, and either
    goes on with what the other began. Workers may die at any time: others do again what they were
    at, and processes take their places.

    Args:
        problems: what to train on; all of one cluster where it is measured.
        config: how.
        directory: of the run.
        scheme: who plays, and who learns.
        validation: as of `train`; its placements are simulated.
        progress: as of `train`.
        watch: as of `train`.
        teacher: as of `train`.

    Returns:
        The trainer at the end of the run.

    Raises:
        PlacetoError: what `train` raises; Ray is not installed, or has no room for the workers;
            workers die again and again.
        KeyboardInterrupt: after the state of the last whole update was written.
    """
    scheme.check(config)
    make_evaluator, cpus = _evaluator(problems, scheme)
    count = scheme.workers * scheme.controllers
    progress(f"starting {count} worker{'s' if count > 1 else ''}")
    controllers = scheme.controllers if scheme.mode == "asynchronous" else 0
    apart = 0 if scheme.evaluator == "measure" else controllers
    with (
        ray_session(scheme.address, count * cpus + apart),
        _crew(problems, config, scheme, make_evaluator, cpus, progress) as make_trainer,
    ):
        return train(
            problems,
            config,
            directory,
            validation=validation,
            progress=progress,
            watch=watch,
            teacher=teacher,
            make_trainer=make_trainer,
            scheme=scheme.document(),
        )


@contextlib.contextmanager
def _crew(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    scheme: Scheme,
    make_evaluator: Callable[[], Evaluator],
    cpus: int,
    progress: Progress,
) -> Iterator[Callable[..., Trainer]]:
    """Yields what makes the trainer; the workers end with the block."""
    count = scheme.workers * scheme.controllers
    options: list[Mapping[str, Any]] = [{"num_cpus": cpus}] * count
    if scheme.evaluator == "measure":
        options = one_a_node(count, cpus)
    if scheme.mode == "synchronous":
        work = partial(Player, problems, config, make_evaluator)
        with Crew(work, options, progress) as players:
            players.start()
            yield partial(SynchronousTrainer, players=players)
        return
    own = [options[first :: scheme.controllers] for first in range(scheme.controllers)]
    with Crew(
        partial(start_controller, problems, config, make_evaluator, own),
        [_beside(workers[0]) for workers in own],
        progress,
    ) as controllers:
        controllers.start()
        yield partial(AsynchronousTrainer, controllers=controllers)


def _beside(worker: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options of a controller.

    One whose workers measure is on the machine of its first, and waits while that works. It counts
    for no CPU: anywhere else it could take one that a worker needs, and both would wait for ever.
    """
    if "resources" not in worker:
        return {"num_cpus": 1}
    return {"num_cpus": 0, "resources": dict.fromkeys(worker["resources"], 0.1)}


def _evaluator(
    problems: Sequence[PlacementProblem], scheme: Scheme
) -> tuple[Callable[[], Evaluator], int]:
    """What makes a worker's evaluator, and how many CPUs it uses."""
    if scheme.evaluator == "simulate":
        return _simulating, 1
    clusters = {problem.cluster.name: problem.cluster for problem in problems}
    if len(clusters) > 1:
        raise PlacetoError(
            f"the problems are on clusters {', '.join(sorted(clusters))}; workers measure on one"
        )
    cluster = next(iter(clusters.values()))
    return partial(_measuring, cluster), max(sum(each.cores or 0 for each in cluster.devices), 1)


def _simulating() -> Evaluator:
    return simulate_many


def _measuring(cluster: Cluster) -> Evaluator:
    from placeto.measurement import MeasuringEvaluator, Runtime

    return MeasuringEvaluator(Runtime(cluster))
