"""Training runs whose work is shared among processes, on this machine or on many."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from placeto.cluster import Cluster
from placeto.measurement.trials.evaluator import FIRST_RUNS
from placeto.models.agent import Teacher
from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig, Settings
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, find_evaluator
from placeto.support.crew import Crew, one_a_node
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.ray_session import ray_session
from placeto.training.distributed.asynchronous import AsynchronousTrainer, start_controller
from placeto.training.distributed.synchronous import Player, SynchronousTrainer
from placeto.training.run import Watch, train
from placeto.training.trainer import Trainer


@dataclass(frozen=True)
class Scheme(Settings):
    """Who plays, and who learns.

    Attributes:
        workers: of each controller: they play its episodes, each its share of every update's.
        mode: `synchronous`: one controller, this process, waits for all episodes of an update
            before it takes the gradient step (as the workers of Placeto). `asynchronous`: each
            controller computes gradients by itself, on what the parameters were when it began, and
            this process applies them as they come (as the controllers and the parameter server of
            ColocRL).
        controllers: how many.
        address: of a Ray cluster, or `auto`; None for this machine.
        evaluator: whether workers `simulate` placements or `measure` them on real devices.
        runs: how many placements of a graph a worker that measures runs at most; the costs that
            they say are what the others are simulated with. None: all are run.

    Raises:
        PlacetoError: a setting that is none, or goes with another mode.
    """

    workers: int = 1
    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    controllers: int = 1
    address: str | None = None
    evaluator: Literal["simulate", "measure"] = "simulate"
    runs: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runs is not None:
            if self.evaluator != "measure":
                raise PlacetoError(
                    f"runs is {self.runs}, but evaluator is {self.evaluator!r}; runs go with "
                    "evaluator measure"
                )
            if self.runs < FIRST_RUNS:
                raise PlacetoError(f"runs is {self.runs}, expected a number from {FIRST_RUNS}")
        if self.controllers > 1 and self.mode == "synchronous":
            raise PlacetoError(
                f"controllers is {self.controllers}, but synchronous training has one; several go "
                "with mode asynchronous"
            )

    def check(self, config: LearningConfig) -> None:
        """Raises a `PlacetoError` if an agent cannot be trained so."""
        if self.workers > config.episodes:
            raise PlacetoError(
                f"workers is {self.workers}, but an update has {config.episodes} episodes to "
                "share; give fewer workers or more episodes"
            )
        agent = agent_of(config)
        if self.evaluator == "measure" and agent.reads_schedules:
            raise PlacetoError(
                f"{agent.name} reads simulated schedules; it cannot be trained on measured step "
                "times"
            )
        if self.mode == "synchronous":
            return
        if agent.imitates:
            raise PlacetoError(
                f"{agent.name} imitates a search before it learns from its episodes, in one order; "
                "it is trained with mode synchronous"
            )
        if config.algorithm == "ppo":
            raise PlacetoError(
                "algorithm ppo takes several gradient steps from one policy; mode asynchronous, "
                "whose parameters change in between, goes with reinforce"
            )

    def document(self) -> dict[str, Any]:
        """What of it names a run: all that the result depends on. It is empty where nothing is.

        The number of workers is not in it: it may change when a run goes on.
        """
        chosen: dict[str, Any] = {}
        if self.mode == "asynchronous":
            chosen |= {"mode": self.mode, "controllers": self.controllers}
        if self.evaluator != "simulate":
            chosen |= {"evaluator": self.evaluator}
        if self.runs is not None:
            chosen |= {"runs": self.runs}
        return {"scheme": chosen} if chosen else {}


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
    measured = scheme.evaluator == "measure"
    apart = scheme.controllers if scheme.mode == "asynchronous" and not measured else 0
    with ray_session(scheme.address, count * cpus + apart):
        options: list[Mapping[str, Any]] = [{"num_cpus": cpus}] * count
        if measured:
            options = one_a_node(count, cpus)
        crew: Crew[Any, Any]
        make_trainer: Callable[..., Trainer]
        if scheme.mode == "synchronous":
            crew = Crew(partial(Player, problems, config, make_evaluator), options, progress)
            make_trainer = partial(SynchronousTrainer, players=crew)
        else:
            own = [options[first :: scheme.controllers] for first in range(scheme.controllers)]
            start = partial(start_controller, problems, config, make_evaluator, own)
            crew = Crew(start, [_beside(workers[0]) for workers in own], progress)
            make_trainer = partial(AsynchronousTrainer, controllers=crew)
        with crew:
            crew.start()
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
        return partial(find_evaluator, "simulate"), 1
    clusters = {problem.cluster.name: problem.cluster for problem in problems}
    if len(clusters) > 1:
        raise PlacetoError(
            f"the problems are on clusters {', '.join(sorted(clusters))}; workers measure on one"
        )
    cluster = next(iter(clusters.values()))
    make = partial(_measuring, cluster, scheme.runs)
    return make, max(sum(each.cores or 0 for each in cluster.devices), 1)


def _measuring(cluster: Cluster, most_runs: int | None) -> Evaluator:
    from placeto.measurement import CorrectingEvaluator, MeasuringEvaluator, Runtime

    if most_runs is None:
        return MeasuringEvaluator(Runtime(cluster))
    return CorrectingEvaluator(Runtime(cluster), most_runs)
