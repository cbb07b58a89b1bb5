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
BUDGETS = (1.0, 5.0, 30.0)
# Of training on one graph: what an impatient user waits for, and what a policy needs to be learned.
PLACEMENTS = (128, 1024)
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

    A policy that has not seen a family is run, as it is, on that family's graphs alone; one that
    has seen all of them, the headline's, on all graphs. Only the first of the headline is trained
    on graphs: fine-tuned for each number of placements, and for the last also from scratch.
    """

    policies: Mapping[str, str]  # name -> a run directory, or the name of a policy that ships
    families: Sequence[str] = FAMILIES  # whose test graphs
    clusters: Sequence[str] = CLUSTERS
    groups: Sequence[str] = GROUPS  # `papers`, `auto`, or at most how many by the papers' rules
    graphs: int = SPLITS["test"]  # of each family
    budgets: Sequence[float] = BUDGETS  # seconds of the searches
    placements: Sequence[int] = PLACEMENTS
    searching: int = 1  # policies of the headline that `auto` is run with

    def runs(self) -> Iterator[Run]:
        """What names each run: problem by problem, the families in turn."""
        names = {family: test_graphs(family) for family in self.families}
        for number, family, cluster in product(range(self.graphs), self.families, self.clusters):
            graph = {"family": family, "graph": names[family][number], "cluster": cluster}
            for groups in self.groups:
                for method, name, budget, seed in self._of_problem(family, number):
                    yield {**graph, "groups": groups, "method": method, "policy": name,
                           "budget_seconds": budget, "seed": seed}  # fmt: skip

    def _of_problem(self, family: str, number: int) -> Iterator[tuple[str, str, float | None, int]]:
        """Method, policy, budget and seed."""
        seen = {name: families_seen(policy(source)) for name, source in self.policies.items()}
        headline = [name for name in self.policies if seen[name] >= set(FAMILIES)]
        learned = [
            (method, name)
            for name in self.policies
            if name in headline or family not in seen[name]
            for method in (GREEDY, BEST_OF)
        ]
        for name in headline[:1]:
            learned.append((REFINED, name))
            learned += [(f"{TUNED} {placements}", name) for placements in self.placements]
            for placements in self.placements[-1:]:
                learned.append((f"{SCRATCH} {placements}", name))
                learned += [
                    (f"{method}{AFTER}{training} {placements}", name)
                    for training in (TUNED, SCRATCH)
                    for method in ZERO_SHOT
                ]
        for method, name in [*((method, "") for method in HEURISTICS), *learned]:
            yield method, name, None, 0
        # Whatever else the machine does is not always to the same one's disadvantage.
        searches = SEARCHES[:: 1 if number % 2 == 0 else -1]
        for seed, name in enumerate(headline[: self.searching]):
            for budget, method in product(self.budgets, searches):
                yield method, name if method == "auto" else "", budget, seed


def conduct(plan: Plan, path: Path) -> dict[str, Any]:
    """What is in a results file once it has a plan's runs; runs of other plans stay in it.

    It is written after each run.

    Raises:
        SystemExit: the file has results of another policy of the same name.
    """
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
        done = found_by(plan, run, _problem(*(run[key] for key in KEYS[:4])))
        told = done["note"] or f"{done['step_time']:.4g} s"
        names = " ".join(filter(None, (done[key] for key in KEYS[1:6])))
        print(f"{number + 1}/{len(missing)} {names}: {told}", flush=True)
        document = {
            "command": "python -m benchmarks.transfer",
            "machine": machine(),
            "policies": document["policies"] | cards,
            "runs": [*document["runs"], done],
        }
        write_results(path, document)
    return document


def read_results(path: Path) -> dict[str, Any]:
    """What is in a results file; each of `runs` a mapping from the columns' names."""
    document = json.loads(path.read_text())
    columns = document.pop("columns")
    return {**document, "runs": [dict(zip(columns, run, strict=True)) for run in document["runs"]]}


def write_results(path: Path, document: dict[str, Any]) -> None:
    """Writes what `read_results` reads, a line for each run, without names; all have the same."""
    rest = {key: value for key, value in document.items() if key != "runs"}
    columns = list(document["runs"][0]) if document["runs"] else []
    head = json.dumps({**rest, "columns": columns}).removesuffix("}")
    lines = [json.dumps([run[column] for column in columns]) for run in document["runs"]]
    write_bytes(path, (head + ', "runs": [\n' + ",\n".join(lines) + "\n]}\n").encode())


def found_by(plan: Plan, run: Run, problem: PlacementProblem) -> Run:
    """The run with what its method finds for a problem, or with a note why there is nothing."""
    seed = run["seed"]
    method, _, training = run["method"].partition(AFTER)
    trained = policy(plan.policies[run["policy"]]) if run["policy"] else None
    if training:
        assert trained is not None
        trained = _trained_on(problem, trained, training, seed)
    # A problem keeps what was computed of it: on a fresh one, nobody is served by those before.
    problem = replace(problem, grouping=problem.op_group)
    incumbent, note = Incumbent(problem, math.inf), ""
    try:
        if method in (*HEURISTICS, *SEARCHES):
            settings = {"policy": plan.policies[run["policy"]]} if run["policy"] else {}
            budget = run["budget_seconds"] or math.inf
            placement = place(problem, method, budget, seed, settings=settings)
            if placement.interrupted:
                raise KeyboardInterrupt
            return {**run, "note": "", **_found(placement, placement.wall_seconds)}
        assert trained is not None
        if method in ZERO_SHOT:
            samples = 1 if method == GREEDY else SAMPLES
            place_zero_shot(incumbent, trained, seed, samples, refined=method == REFINED)
        else:
            _train(incumbent, trained, method, seed)
    except NotApplicable as error:
        note = str(error)
    return {**run, "note": note, **_found(incumbent, incumbent.seconds)}


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


def families_seen(trained: Trained) -> set[str]:
    """Families that a policy was trained on graphs of."""
    names = {family: {member.name for member in members(family)} for family in FAMILIES}
    return {family for family in FAMILIES if names[family] & set(trained.trained_on("graph"))}


def test_graphs(family: str) -> list[str]:
    """Names of a family's test graphs, by number."""
    return [member.name for member in members(family) if member.split == "test"]


def card(source: str) -> dict[str, Any]:
    """What the page says of a policy: its weights' digest, what it has seen.

    Raises:
        SystemExit: it was trained or validated on test graphs.
    """
    trained = policy(source)
    graphs = trained.trained_on("graph") | {
        row["graph"] for row in trained.card.get("validation", ())
    }
    if leaked := graphs & {name for family in FAMILIES for name in test_graphs(family)}:
        raise SystemExit(f"{source}: was trained or validated on {min(leaked)}, a test graph")
    weights = [tensor.numpy().tobytes() for tensor in trained.policy.state_dict().values()]
    return {
        "digest": hashlib.sha256(b"".join(weights)).hexdigest()[:16],
        "families": sorted(families_seen(trained)),
        "clusters": sorted(trained.trained_on("cluster")),
    }


def _found(found: Any, wall_seconds: float) -> dict[str, Any]:
    return {
        "step_time": seconds(found.step_time),
        "feasible": found.feasible,
        "evaluations": found.evaluations,
        "wall_seconds": round(wall_seconds, 4),
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
