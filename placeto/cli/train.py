"""`placeto train`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import OmitArgPrefixes, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import Json, ProblemsArguments, RayAddress, Workers
from placeto.cli.output import note, print_json
from placeto.cli.training_view import training_view
from placeto.models.agents import AGENTS, find_agent
from placeto.models.settings import LearningConfig
from placeto.support.errors import PlacetoError
from placeto.zoo.folders import is_family

if TYPE_CHECKING:
    from placeto.training import Trainer


@dataclass(frozen=True, kw_only=True)
class Train(ProblemsArguments):
    """Trains a policy by REINFORCE or PPO; goes on with the run that the directory holds.

    Of families, the graphs of the training split are taken. Every agent has options of its own:
    `placeto train --agent NAME --help`.

    Attributes:
        agent: What is trained: placeto (for any clusters), placeto-2019 (Addanki et al. 2019;
            clusters of one size), colocrl or hierarchical (Mirhoseini et al. 2017, 2018; one
            graph).
        per_graph: Of the clusters each graph is placed on so many, which take turns; by default on
            all of them.
        validate: Graphs to choose the checkpoint by, on the same clusters; by default the
            validation splits of the families among --graphs. Nothing after it: none.
        output: Run directory.
        workers: Play the episodes in so many Ray workers of this machine, or of a cluster; the
            result is the same. By default in this process.
        mode: What the workers are waited for: synchronous (every update for all of its episodes)
            or asynchronous (several controllers send gradients when they have them).
        controllers: Of asynchronous training: how many, each with --workers of its own.
        evaluator: Whether the workers simulate placements or measure them on the real devices, one
            worker a machine.
        runs: Measure at most so many placements a graph and worker, those that may be the fastest;
            the others are simulated with the costs that these say. By default all are run.
        training: How to train.
    """

    agent: Annotated[str, arg(metavar="NAME")] = "placeto"
    per_graph: Annotated[int | None, arg(metavar="K")] = None
    validate: Annotated[tuple[str, ...] | None, arg(metavar="[GRAPH|FAMILY …]")] = None
    output: Annotated[str, arg(aliases=["-o"], metavar="DIR")]
    workers: Workers = None
    ray_address: RayAddress = None
    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    controllers: Annotated[int, arg(metavar="K")] = 1
    evaluator: Literal["simulate", "measure"] = "simulate"
    runs: Annotated[int | None, arg(metavar="R")] = None
    training: OmitArgPrefixes[LearningConfig] = field(default_factory=AGENTS["placeto"].config)
    json: Json = False


def arguments_of(argv: Sequence[str]) -> type[Train]:
    """The arguments for the agent that a command line names last, whose settings are options.

    Raises:
        PlacetoError: there is no such agent, or an option is one of another agent.
    """
    agent = Train.agent
    for text, following in pairwise([*argv, ""]):
        if text == "--agent":
            agent = following
        elif text.startswith("--agent="):
            agent = text.removeprefix("--agent=")
    find_agent(agent)
    options = {text.partition("=")[0] for text in argv if text.startswith("--")}
    for option in sorted(options - _options(agent)):
        others = [other for other in AGENTS if option in _options(other)]
        if others:
            raise PlacetoError(
                f"{option} is no option of --agent {agent}, but of {', '.join(others)}; see "
                f"placeto train --agent {agent} --help"
            )
    config = AGENTS[agent].config
    annotation: Any = OmitArgPrefixes[config]  # type: ignore[valid-type,misc]
    return make_dataclass(
        f"Train{config.__name__}",
        [("training", annotation, field(default_factory=config))],
        bases=(Train,),
        namespace={"__doc__": Train.__doc__},
        frozen=True,
        kw_only=True,
    )


def run(arguments: Train) -> int:
    """Trains, and says where the policy is."""
    from placeto.placers.registry import annealed

    train = _training(arguments)
    if arguments.per_graph is not None and arguments.per_graph < 1:
        raise PlacetoError(f"--per-graph {arguments.per_graph}: expected at least 1")
    problems = arguments.problems("train", per_graph=arguments.per_graph)
    wanted = arguments.validate
    if wanted is None:
        wanted = tuple(source for source in arguments.graphs if is_family(source))
    validation = arguments.problems("validation", wanted, arguments.per_graph)
    try:
        with training_view(arguments.training.updates) as (report, watch):
            trainer = train(
                problems,
                arguments.training,
                arguments.output,
                validation=validation,
                progress=report,
                watch=watch,
                teacher=annealed,
            )
    except KeyboardInterrupt:
        if not (Path(arguments.output) / "trainer.pt").exists():  # its workers were starting
            raise
        note(f"interrupted; the same command goes on from the checkpoint in {arguments.output}")
        return INTERRUPTED
    if arguments.json:
        names = [problem.graph.name for problem in problems]
        if len({problem.cluster.name for problem in problems}) > 1:
            names = [f"{problem.graph.name} on {problem.cluster.name}" for problem in problems]
        document = {
            "output": arguments.output,
            "updates": trainer.updates,
            "episodes": trainer.episodes,
            "evaluations": trainer.evaluations,
            "best_step_time": dict(zip(names, trainer.best, strict=True)),
        }
        print_json(document)
    counts = f"{trainer.updates} updates, {trainer.episodes} episodes"
    note(f"{counts}; the run is in {arguments.output}")
    return 0


def _training(arguments: Train) -> "Callable[..., Trainer]":
    """What trains: this process alone, or with workers.

    Raises:
        PlacetoError: options that go with workers, without them; or workers that make no sense.
    """
    from placeto.training.distributed import Scheme, train_with_workers
    from placeto.training.run import train

    if arguments.workers is None:
        for name in ("ray_address", "mode", "controllers", "evaluator", "runs"):
            if getattr(arguments, name) != getattr(Train, name):
                option = name.replace("_", "-")
                raise PlacetoError(f"--{option} goes with workers; give --workers N, too")
        return train
    scheme = Scheme(
        workers=arguments.workers,
        mode=arguments.mode,
        controllers=arguments.controllers,
        address=arguments.ray_address,
        evaluator=arguments.evaluator,
        runs=arguments.runs,
    )
    scheme.check(arguments.training)
    return partial(train_with_workers, scheme=scheme)


def _options(agent: str) -> set[str]:
    """All options of an agent's command line."""
    own = [*fields(AGENTS[agent].config), *fields(Train)]
    return {f"--{entry.name.replace('_', '-')}" for entry in own}
