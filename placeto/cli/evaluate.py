"""`placeto evaluate`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from tyro.conf import arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import Methods, ProblemsArguments, RowsFile, parse_methods
from placeto.cli.output import check_outputs, note, print_result, progress
from placeto.placers import NotApplicable, place
from placeto.placers.configs import Decoding
from placeto.placers.registry import find_placer
from placeto.problem import PlacementProblem
from placeto.reports.rows import EvaluationRow, evaluation_row, geometric_means
from placeto.reports.tables import evaluation_tables
from placeto.search.incumbent import Incumbent
from placeto.support.errors import PlacetoError
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
        decoding: Ways to decode a policy of placeto's for --budget seconds each, with commas
            between them: greedy, sampling, starts, mirrored, beam, active.
        methods: Placers beside it, with commas between them; by default expert, etf and heft.
            Those that take such a policy, as auto does, are given this one.
        budget: Seconds of those placers that search, and of each decoding.
        seed: Where random numbers start.
        json: Print one JSON document instead of a table.
    """

    policy: Annotated[str, arg(metavar="NAME|DIR")]
    split: Literal["train", "validation", "test"] = "test"
    samples: int = 16
    fine_tune: Annotated[int, arg(metavar="N")] = 0
    decoding: Annotated[str | None, arg(metavar="A,B,…")] = None
    methods: Methods = None
    budget: float = 30.0
    seed: int = 0
    output: RowsFile = None
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
    methods = [name for name in parse_methods(arguments.methods, USUAL) if name != "single"]
    check_outputs(arguments.output, inputs=arguments.graphs)
    from placeto.models.stored import check_shape, load_trained  # torch is slow to import

    trained = load_trained(arguments.policy)
    decodings = _decodings(arguments, trained)
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
                rows.extend(_rows(problem, trained, methods, decodings, arguments, report))
    except KeyboardInterrupt:
        interrupted = True
    document = {
        "policy": arguments.policy,
        "rows": rows,
        "means": geometric_means(rows),
        "interrupted": interrupted,
    }
    tables = evaluation_tables(arguments.policy, rows) if rows else []
    print_result(arguments.json, document, tables, arguments.output)
    if interrupted:
        note("interrupted; what comes after that is left out")
    return INTERRUPTED if interrupted else 0


def _decodings(arguments: Evaluate, trained: "Trained") -> list[str]:
    """The decodings that are wanted, none twice."""
    if arguments.decoding is None:
        return []
    names = list(dict.fromkeys(name.strip() for name in arguments.decoding.split(",")))
    known = get_args(Decoding)
    for name in names:
        if name not in known:
            raise PlacetoError(f"--decoding {name}: expected {', '.join(known)}")
    if not trained.agent.guide:
        raise PlacetoError(f"--decoding: {arguments.policy} is a policy of {trained.agent.name}")
    return names


def _rows(
    problem: PlacementProblem,
    trained: "Trained",
    methods: list[str],
    decodings: list[str],
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
        guided = trained.agent.guide and find_placer(method).policies == trained.agent.name
        settings = {"policy": arguments.policy} if guided else {}
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
    play = partial(place_zero_shot, trained=trained, seed=seed)
    runs: dict[str, partial[Any]] = {"greedy": play}
    if samples > 1:
        runs[f"best of {samples}"] = partial(play, samples=samples)
    if samples > 1 and trained.agent.guide:
        runs[f"best of {samples}, refined"] = partial(play, samples=samples, refined=True)
    if placements:
        runs[f"fine-tuned {placements}"] = partial(
            place_fine_tuned, trained=trained, seed=seed, placements=placements
        )
    for method, run_policy in runs.items():
        report(f"{method} on {where}")
        incumbent = Incumbent(problem, np.inf)
        run_policy(incumbent)
        yield evaluation_row(incumbent.placement(method, seed), single)
    for name in decodings:
        report(f"{name} on {where}")
        settings = {"policy": arguments.policy, "decoding": name}
        found = place(problem, "placeto", arguments.budget, seed, settings=settings)
        yield evaluation_row(replace(found, method=f"{name}, {arguments.budget:g} s"), single)
        if found.interrupted:
            raise KeyboardInterrupt
