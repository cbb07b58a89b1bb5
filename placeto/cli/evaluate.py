"""`placeto evaluate`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from tyro.conf import arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import OutputFile, ProblemsArguments
from placeto.cli.output import check_outputs, finite, note, print_json, print_rich
from placeto.cli.progress import progress
from placeto.placers import NotApplicable, place
from placeto.placers.registry import find_placer
from placeto.problem import PlacementProblem
from placeto.reports.evaluation import EvaluationRow, evaluation_row, geometric_means
from placeto.reports.tables import evaluation_tables
from placeto.search.incumbent import Incumbent
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from placeto.models.stored import Trained

USUAL = ("expert", "etf", "heft")


@dataclass(frozen=True, kw_only=True)
class Evaluate(ProblemsArguments):
    """Runs a trained policy on graphs, as it is and trained further on each, beside placers.

    Of families, the graphs of the test split are taken.

    Attributes:
        policy: A run directory of `placeto train`, or a policy that ships (see `placeto list`).
        split: Which graphs of the families.
        samples: How many episodes the best is taken of, one of them greedy.
        fine_tune: Placements to train the policy for on each problem, one an episode; 0 for none.
        methods: Placers beside it, with commas between them; by default expert, etf and heft.
            Those that take such a policy, as auto does, are given this one.
        budget: Seconds of those placers that search.
        seed: Where random numbers start.
        output: File to write the JSON document to as well.
        json: Print one JSON document instead of a table.
    """

    policy: Annotated[str, arg(metavar="NAME|DIR")]
    split: Literal["train", "validation", "test"] = "test"
    samples: int = 16
    fine_tune: Annotated[int, arg(metavar="N")] = 0
    methods: Annotated[str | None, arg(metavar="A,B,…")] = None
    budget: float = 30.0
    seed: int = 0
    output: OutputFile = None
    json: bool = False


def run(arguments: Evaluate) -> int:
    """Runs the policy and the placers on every problem; prints what was found until Ctrl-C."""
    for name, least in (("samples", 1), ("fine_tune", 0), ("seed", 0)):
        if not least <= (value := getattr(arguments, name)) < 2**63:
            option = name.replace("_", "-")
            raise PlacetoError(
                f"--{option} {value}: expected a whole number from {least}, below 2^63"
            )
    if not arguments.budget > 0:
        raise PlacetoError(f"--budget {arguments.budget}: expected more than 0 seconds")
    methods = _methods(arguments.methods)
    check_outputs(arguments.output, inputs=arguments.graphs)
    from placeto.models.stored import check_shape, load_trained  # torch is slow to import

    trained = load_trained(arguments.policy)
    problems = arguments.problems(arguments.split)
    if not trained.agent.any_cluster:
        for problem in problems:
            check_shape(trained, {"num_devices": problem.num_devices}, problem)
    if not problems:
        raise PlacetoError("no problem to evaluate on")
    rows: list[EvaluationRow] = []
    interrupted = False
    try:
        with progress("evaluate") as report:
            for problem in problems:
                rows.extend(_rows(problem, trained, methods, arguments, report))
    except KeyboardInterrupt:
        interrupted = True
    document = {
        "policy": arguments.policy,
        "rows": rows,
        "means": geometric_means(rows),
        "interrupted": interrupted,
    }
    if arguments.output is not None:
        write_json(arguments.output, finite(document))
        note(f"the rows are in {arguments.output}")
    if arguments.json:
        print_json(document)
    elif rows:
        print_rich(*evaluation_tables(arguments.policy, rows))
    if interrupted:
        note("interrupted; what comes after that is left out")
    return INTERRUPTED if interrupted else 0


def _rows(
    problem: PlacementProblem,
    trained: "Trained",
    methods: list[str],
    arguments: Evaluate,
    report: Progress,
) -> Iterator[EvaluationRow]:
    """What each method finds on a problem."""
    from placeto.placers.learned import place_fine_tuned, place_zero_shot

    seed, samples, placements = arguments.seed, arguments.samples, arguments.fine_tune
    where = f"{problem.graph.name} on {problem.cluster.name}"
    single = place(problem, "single")
    yield evaluation_row(single, single)
    for method in methods:
        report(f"{method} on {where}")
        settings = {"policy": arguments.policy} if _takes(method, trained) else {}
        try:
            found = place(problem, method, arguments.budget, seed, settings=settings)
        except NotApplicable as error:
            if arguments.methods is not None:
                raise
            note(f"{method} is left out: {error}")
            continue
        yield evaluation_row(found, single)
        if found.interrupted:
            raise KeyboardInterrupt
    runs: dict[str, Callable[[Incumbent], object]] = {
        "greedy": lambda incumbent: place_zero_shot(incumbent, trained, seed)
    }
    if samples > 1:
        runs[f"best of {samples}"] = lambda incumbent: place_zero_shot(
            incumbent, trained, seed, samples
        )
    if samples > 1 and trained.agent.guide:
        runs[f"best of {samples}, refined"] = lambda incumbent: place_zero_shot(
            incumbent, trained, seed, samples, refined=True
        )
    if placements:
        runs[f"fine-tuned {placements}"] = lambda incumbent: place_fine_tuned(
            incumbent, trained, seed, placements
        )
    for method, run_policy in runs.items():
        report(f"{method} on {where}")
        incumbent = Incumbent(problem, np.inf)
        run_policy(incumbent)
        yield evaluation_row(incumbent.placement(method, seed), single)


def _takes(method: str, trained: "Trained") -> bool:
    """Whether a placer can work with the policy."""
    return bool(trained.agent.guide) and find_placer(method).policies == trained.agent.name


def _methods(text: str | None) -> list[str]:
    names = USUAL if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        find_placer(name)
    return [name for name in dict.fromkeys(names) if name != "single"]
