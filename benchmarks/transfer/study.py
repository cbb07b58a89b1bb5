"""The runs of the study: which there are, and doing those that are missing, one after the other."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.output import machine
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.graph import ComputationGraph
from placeto.grouping import Grouping, coarsen, colocation_groups
from placeto.models.stored import Trained, load_trained
from placeto.placers import NotApplicable, place
from placeto.placers.learned import place_fine_tuned, place_from_scratch, place_zero_shot
from placeto.reports.rows import seconds
from placeto.search.incumbent import Incumbent
from placeto.support.files import write_bytes
from placeto.zoo.families import SPLITS, members
from placeto.zoo.folders import family_graphs

FAMILIES = ("cifar10", "nmt", "ptb", "transformer")
CLUSTERS = ("k80x2", "k80x4", "k80x8", "p100x2-k80x2")
GROUPS = ("papers", "auto", "128")  # the last: as many as the policy was trained with
HEURISTICS = ("single", "expert", "etf", "heft", "m-etf", "m-sct", "metis", "scotch")
GREEDY, SAMPLES = "greedy", 16
BEST_OF = f"best of {SAMPLES}"
REFINED = f"{BEST_OF}, refined"  # by further sweeps
ZERO_SHOT = (GREEDY, BEST_OF, REFINED)
SCRATCH, TUNED = "from scratch", "fine-tuned"
AFTER = " after "  # what a policy finds as it is, once it was trained so
SEARCHES = ("annealing", "auto")
KEYS = ("family", "graph", "cluster", "groups", "method", "policy", "budget_seconds", "seed")
Run = dict[str, Any]
_key = itemgetter(*KEYS)
policy = cache(load_trained)


@dataclass(frozen=True)
class Plan:
    """What a study consists of.

    A policy is run, as it is, on families that it has not seen; the headline's, which have seen all
    of them, on all. Only the first of these is trained on graphs, for the last number of placements
    also from scratch.
    """

    policies: Mapping[str, str]  # name -> a run directory, or the name of a policy that ships
    families: Sequence[str] = FAMILIES  # whose test graphs
    clusters: Sequence[str] = CLUSTERS
    groups: Sequence[str] = GROUPS  # `papers`, `auto`, or at most how many by the papers' rules
    graphs: int = SPLITS["test"]  # of each family
    budgets: Sequence[float] = (1.0, 5.0, 30.0)  # seconds of the searches
    # Of training: what an impatient user waits for, and what a policy needs to be learned.
    placements: Sequence[int] = (128, 1024)
    searching: int = 1  # policies of the headline that `auto` is run with

    def runs(self) -> Iterator[Run]:
        """What names each run: problem by problem, the families in turn."""
        names = {family: test_graphs(family) for family in self.families}
        of_each = range(self.graphs), self.families, self.clusters, self.groups
        for number, family, cluster, groups in product(*of_each):
            for rest in self._of_problem(family, number):
                key = (family, names[family][number], cluster, groups, *rest)
                yield dict(zip(KEYS, key, strict=True))

    def _of_problem(self, family: str, number: int) -> Iterator[tuple[str, str, float | None, int]]:
        """Method, policy, budget and seed."""
        cards = {name: card(source) for name, source in self.policies.items()}
        leading = headline(cards)
        learned = [
            (method, name)
            for name in self.policies
            if name in leading or family not in cards[name]["families"]
            for method in (GREEDY, BEST_OF)
        ]
        for name in leading[:1]:
            tuned = [f"{TUNED} {placements}" for placements in self.placements]
            longest = [f"{kind} {self.placements[-1]}" for kind in (TUNED, SCRATCH) if tuned]
            after = [f"{method}{AFTER}{each}" for each in longest for method in ZERO_SHOT]
            learned += [(method, name) for method in (REFINED, *tuned, *longest[1:], *after)]
        for method, name in [*((method, "") for method in HEURISTICS), *learned]:
            yield method, name, None, 0
        # Whatever else the machine does is not always to the same one's disadvantage.
        searches = SEARCHES[:: 1 if number % 2 == 0 else -1]
        for seed, name in enumerate(leading[: self.searching]):
            for budget, method in product(self.budgets, searches):
                yield method, name if method == "auto" else "", budget, seed


def conduct(plan: Plan, path: Path) -> dict[str, Any]:
    """What is in a results file, written after each run, once it has a plan's runs too."""
    document = read_results(path) if path.exists() else {"policies": {}, "runs": []}
    cards = {name: card(source) for name, source in plan.policies.items()}
    for name in cards:
        if document["policies"].get(name, cards[name])["digest"] != cards[name]["digest"]:
            raise SystemExit(
                f"{path}: has results of another policy {name}; give this one another name, or "
                "remove the file"
            )
    have = {_key(run) for run in document["runs"]}
    missing = [run for run in plan.runs() if _key(run) not in have]
    if missing:
        warm_up(plan)
    for number, run in enumerate(missing):
        done = found_by(plan, run, _problem(*_key(run)[:4]))
        told = done["note"] or f"{done['step_time']:.4g} s"
        names = " ".join(filter(None, _key(run)[1:6]))
        print(f"{number + 1}/{len(missing)} {names}: {told}", flush=True)
        head = {"command": "python -m benchmarks.transfer", "machine": machine()}
        found = {"policies": document["policies"] | cards, "runs": [*document["runs"], done]}
        document = head | found
        write_results(path, document)
    return document


def read_results(path: Path) -> dict[str, Any]:
    """What is in a results file; each of `runs` a mapping from the columns' names."""
    document = json.loads(path.read_text())
    columns = document.pop("columns")
    return {**document, "runs": [dict(zip(columns, run, strict=True)) for run in document["runs"]]}


def write_results(path: Path, document: dict[str, Any]) -> None:
    """Writes what `read_results` reads, a line for each run, without names; all have the same."""
    runs = document["runs"]
    columns = list(runs[0]) if runs else []
    rest = {key: value for key, value in document.items() if key != "runs"}
    head = json.dumps({**rest, "columns": columns, "runs": []}).removesuffix("]}")
    lines = [json.dumps([run[column] for column in columns]) for run in runs]
    write_bytes(path, (head + "\n" + ",\n".join(lines) + "\n]}\n").encode())


def found_by(plan: Plan, run: Run, problem: PlacementProblem) -> Run:
    """The run with what its method finds for a problem, or with a note why there is nothing."""
    seed, source = run["seed"], plan.policies.get(run["policy"])
    method, _, training = run["method"].partition(AFTER)
    trained: Any = policy(source) if source else None
    if training:
        trained = _trained_on(problem, trained, training, seed)
    # A problem keeps what was computed of it: on a fresh one, nobody is served by those before.
    problem = replace(problem, grouping=problem.op_group)
    found: Any = Incumbent(problem, math.inf)
    note = ""
    try:
        if method in (*HEURISTICS, *SEARCHES):
            settings = {"policy": source} if source else {}
            budget = run["budget_seconds"] or math.inf
            found = place(problem, method, budget, seed, settings=settings)
            if found.interrupted:
                raise KeyboardInterrupt
        elif method in ZERO_SHOT:
            samples = 1 if method == GREEDY else SAMPLES
            place_zero_shot(found, trained, seed, samples, refined=method == REFINED)
        else:
            _train(found, trained, method, seed)
    except NotApplicable as error:
        note = str(error)
    took = found.seconds if isinstance(found, Incumbent) else found.wall_seconds
    step_time, feasible = seconds(found.step_time), found.feasible
    rest = {"evaluations": found.evaluations, "wall_seconds": round(took, 4)}
    return {**run, "note": note, "step_time": step_time, "feasible": feasible, **rest}


def _train(incumbent: Incumbent, trained: Trained, method: str, seed: int) -> Trained:
    kind, _, count = method.rpartition(" ")
    if kind == TUNED:
        return place_fine_tuned(incumbent, trained, seed, int(count))
    return place_from_scratch(incumbent, trained.config, seed, int(count))


@lru_cache(maxsize=1)
def _trained_on(problem: PlacementProblem, trained: Trained, method: str, seed: int) -> Trained:
    return _train(Incumbent(problem, math.inf), trained, method, seed)


def warm_up(plan: Plan) -> None:
    """Loads and compiles what the runs need, so that none of them is charged for it."""
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 8)
    short = replace(plan, placements=(1,))
    for run in {(run["method"], run["policy"]): run for run in short.runs()}.values():
        found_by(plan, {**run, "budget_seconds": run["budget_seconds"] and 1.0}, problem)


def headline(policies: Mapping[str, Any]) -> list[str]:
    """Policies, by their cards, that have seen graphs of every family."""
    return [name for name, card in policies.items() if set(card["families"]) >= set(FAMILIES)]


def test_graphs(family: str) -> list[str]:
    """Names of a family's test graphs, by number."""
    return [member.name for member in members(family) if member.split == "test"]


@cache
def card(source: str) -> dict[str, Any]:
    """A policy's digest, families and clusters; SystemExit if it has seen test graphs."""
    trained = policy(source)
    graphs = trained.trained_on("graph")
    validated = {row["graph"] for row in trained.card.get("validation", ())}
    tests = {name for family in FAMILIES for name in test_graphs(family)}
    if leaked := (graphs | validated) & tests:
        raise SystemExit(f"{source}: was trained or validated on {min(leaked)}, a test graph")
    seen = [f for f in FAMILIES if graphs & {member.name for member in members(f)}]
    weights = [tensor.numpy().tobytes() for tensor in trained.policy.state_dict().values()]
    return {
        "digest": hashlib.sha256(b"".join(weights)).hexdigest()[:16],
        "families": sorted(seen),
        "clusters": sorted(trained.trained_on("cluster")),
    }


@lru_cache(maxsize=2)
def _graphs(family: str) -> dict[str, ComputationGraph]:
    return {graph.name: graph for graph in family_graphs(f"family:{family}", "test")}


@lru_cache(maxsize=2)
def _problem(family: str, graph: str, cluster: str, groups: str) -> PlacementProblem:
    loaded = _graphs(family)[graph]
    grouping: Grouping = groups
    if groups.isdecimal():
        grouping = coarsen(loaded, colocation_groups(loaded), int(groups))
    return PlacementProblem(loaded, load_cluster(cluster), grouping)
