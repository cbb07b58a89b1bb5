"""`placeto train`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import OmitArgPrefixes, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import ProblemsArguments, RayAddress
from placeto.cli.output import note, print_json
from placeto.cli.training_view import training_view
from placeto.models.agents import AGENTS, find_agent
from placeto.models.kind import AgentKind
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
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
        validate: Graphs to choose the checkpoint by, on the same clusters; by default the
            validation splits of the families among --graphs. Nothing after it: none.
        output: Run directory.
        workers: Play the episodes in so many Ray workers of this machine, or of a cluster; the
            result is the same. By default in this process.
        ray_address: A Ray cluster to take the workers from: its address, or auto.
        mode: What the workers are waited for: synchronous (every update for all of its episodes)
            or asynchronous (several controllers send gradients when they have them).
        controllers: Of asynchronous training: how many, each with --workers of its own.
        evaluator: Whether the workers simulate placements or measure them on the real devices, one
            worker a machine.
        training: How to train.
        json: Print one JSON document instead of text.
    """

    agent: Annotated[str, arg(metavar="NAME")] = "placeto"
    validate: Annotated[tuple[str, ...] | None, arg(metavar="[GRAPH|FAMILY …]")] = None
    output: Annotated[str, arg(aliases=["-o"], metavar="DIR")]
    workers: Annotated[int | None, arg(metavar="N")] = None
    ray_address: RayAddress = None
    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    controllers: Annotated[int, arg(metavar="K")] = 1
    evaluator: Literal["simulate", "measure"] = "simulate"
    training: OmitArgPrefixes[LearningConfig] = field(default_factory=AGENTS["placeto"].config)
    json: bool = False


def _arguments(kind: AgentKind) -> type[Train]:
    """The arguments of the command for an agent, whose settings are options."""
    settings: Any = field(default_factory=kind.config)
    annotation: Any = OmitArgPrefixes[kind.config]  # type: ignore[misc,name-defined]
    made = make_dataclass(
        f"Train{kind.config.__name__}",
        [("training", annotation, settings)],
        bases=(Train,),
        frozen=True,
        kw_only=True,
    )
    made.__doc__ = Train.__doc__
    return made


ARGUMENTS = {kind.name: _arguments(kind) for kind in AGENTS.values()}


def arguments_of(argv: Sequence[str]) -> type[Train]:
    """The arguments of the agent that a command line names.

    Raises:
        PlacetoError: there is no such agent, or an option is one of another agent.
    """
    agent = _named_agent(argv)
    find_agent(agent)
    options = {text.partition("=")[0] for text in argv if text.startswith("--")}
    for option in sorted(options - _options(agent)):
        others = [other for other in AGENTS if option in _options(other)]
        if others:
            raise PlacetoError(
                f"{option} is no option of --agent {agent}, but of {', '.join(others)}; see "
                f"placeto train --agent {agent} --help"
            )
    return ARGUMENTS[agent]


def run(arguments: Train) -> int:
    """Trains, and says where the policy is."""
    from placeto.placers.registry import annealed

    train = _training(arguments)
    problems = arguments.problems("train")
    try:
        with training_view(arguments.training.updates) as (report, watch):
            trainer = train(
                problems,
                arguments.training,
                arguments.output,
                validation=_validation(arguments),
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
        print_json(
            {
                "output": arguments.output,
                "updates": trainer.updates,
                "episodes": trainer.episodes,
                "evaluations": trainer.evaluations,
                "best_step_time": dict(zip(_names(problems), trainer.best, strict=True)),
            }
        )
    note(
        f"{trainer.updates} updates, {trainer.episodes} episodes; the run is in {arguments.output}"
    )
    return 0


def _training(arguments: Train) -> "Callable[..., Trainer]":
    """What trains: this process alone, or with workers.

    Raises:
        PlacetoError: options that go with workers, without them; or workers that make no sense.
    """
    from placeto.training.distributed import Scheme, train_with_workers
    from placeto.training.run import train

    if arguments.workers is None:
        for option, given in (
            ("--ray-address", arguments.ray_address is not None),
            ("--mode", arguments.mode != "synchronous"),
            ("--controllers", arguments.controllers != 1),
            ("--evaluator", arguments.evaluator != "simulate"),
        ):
            if given:
                raise PlacetoError(f"{option} goes with workers; give --workers N, too")
        return train
    scheme = Scheme(
        workers=arguments.workers,
        mode=arguments.mode,
        controllers=arguments.controllers,
        address=arguments.ray_address,
        evaluator=arguments.evaluator,
    )
    scheme.check(arguments.training)
    return partial(train_with_workers, scheme=scheme)


def _named_agent(argv: Sequence[str]) -> str:
    """What stands after the last `--agent`; the default if there is none."""
    agent = Train.agent
    for text, following in zip(argv, [*argv[1:], ""], strict=False):
        if text == "--agent":
            agent = following
        elif text.startswith("--agent="):
            agent = text.removeprefix("--agent=")
    return agent


def _options(agent: str) -> set[str]:
    """All options of an agent's command line."""
    default = next(entry for entry in fields(ARGUMENTS[agent]) if entry.name == "training")
    assert callable(default.default_factory)
    own = [entry.name for entry in fields(default.default_factory())]
    return {f"--{name.replace('_', '-')}" for name in [*own, *(f.name for f in fields(Train))]}


def _validation(arguments: Train) -> list[PlacementProblem]:
    wanted = arguments.validate
    if wanted is None:
        wanted = tuple(source for source in arguments.graphs if is_family(source))
    return arguments.problems("validation", wanted)


def _names(problems: Sequence[PlacementProblem]) -> list[str]:
    """Names of problems: of their graphs; of these and their clusters where there are several."""
    if len({problem.cluster.name for problem in problems}) == 1:
        return [problem.graph.name for problem in problems]
    return [f"{problem.graph.name} on {problem.cluster.name}" for problem in problems]
