"""What was measured, as numbers that can be compared."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.transfer.study import FAMILIES

HEADROOM = 0.97
NO_WORSE = 1.001
Problem = tuple[str, str, str, str]


@dataclass(frozen=True)
class Point:
    """What a method found for a problem.

    Attributes:
        problem: family, graph, cluster, groups.
        method: with its budget, if it has one.
        policy: its name; "" for methods without.
        seed: of a search.
        step_time: seconds; infinite where it found nothing that fits in memory.
        best_known: the shortest step time that any run of the study found, in seconds.
        searched: whether a search ran on the problem.
        single: seconds of the best single device; infinite where none fits.
        wall_seconds: it took.
    """

    problem: Problem
    method: str
    policy: str
    seed: int
    step_time: float
    best_known: float
    searched: bool
    single: float
    wall_seconds: float

    @property
    def family(self) -> str:
        """The problem's family."""
        return self.problem[0]

    @property
    def cluster(self) -> str:
        """The problem's cluster."""
        return self.problem[2]

    @property
    def groups(self) -> str:
        """The problem's groups: `papers`, `auto`, or at most how many."""
        return self.problem[3]

    @property
    def relative(self) -> float:
        """Step time over the best known."""
        return self.step_time / self.best_known

    @property
    def has_headroom(self) -> bool:
        """Whether the best known is below 0.97 of one device."""
        return self.best_known < HEADROOM * self.single


def points(document: Mapping[str, Any]) -> list[Point]:
    """A point for each run that found a placement of a problem on which any method found one.

    Problems with groups by a rule come before those with a number of them.
    """
    by_problem: dict[Problem, list[dict[str, Any]]] = defaultdict(list)
    for run in sorted(document["runs"], key=lambda run: run["groups"].isdecimal()):
        by_problem[run["family"], run["graph"], run["cluster"], run["groups"]].append(run)
    found = []
    for problem, runs in by_problem.items():
        times = [_time(run) for run in runs]
        best = min(times)
        if not math.isfinite(best):
            continue
        has_search = any(run["budget_seconds"] for run in runs)
        single = next((_time(run) for run in runs if run["method"] == "single"), math.inf)
        found += [
            Point(
                problem,
                label(run["method"], run["budget_seconds"]),
                run["policy"],
                run["seed"],
                time,
                best,
                has_search,
                single,
                run["wall_seconds"],
            )
            for run, time in zip(runs, times, strict=True)
            if not run["note"]
        ]
    return found


def searched(chosen: Sequence[Point]) -> Sequence[Point]:
    """Those of problems that were searched, if any: the best known of others says little."""
    return [point for point in chosen if point.searched] or chosen


def label(method: str, budget_seconds: float | None) -> str:
    """A method with its budget."""
    return method if budget_seconds is None else f"{method}, {budget_seconds:g} s"


def headline(policies: Mapping[str, Any]) -> list[str]:
    """Policies that have seen graphs of every family."""
    return [name for name, card in policies.items() if set(card["families"]) >= set(FAMILIES)]


def unseen_clusters(policies: Mapping[str, Any], clusters: Iterable[str]) -> set[str]:
    """Of some clusters those that no policy of the headline was trained on."""
    seen = {cluster for name in headline(policies) for cluster in policies[name]["clusters"]}
    return set(clusters) - seen


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; NaN of nothing."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def ratios(chosen: Sequence[Point], method: str, other: str) -> dict[Problem, float]:
    """Step time of a method over that of another, where both found something that fits.

    Where one has several runs (policies, seeds), their geometric means count.
    """
    times: dict[str, dict[Problem, list[float]]] = {method: defaultdict(list), other: {}}
    times[other] = defaultdict(list)
    for point in chosen:
        if point.method in times and math.isfinite(point.step_time):
            times[point.method][point.problem].append(point.step_time)
    return {
        problem: geometric_mean(own) / geometric_mean(times[other][problem])
        for problem, own in times[method].items()
        if problem in times[other]
    }


def duels(chosen: Sequence[Point], method: str, other: str) -> list[tuple[Point, float]]:
    """Runs of a method, each with its step time over the other's of the same seed.

    What does not fit in memory is infinitely slow; where neither fits they are equal.
    """
    others = {(p.problem, p.seed): p.step_time for p in chosen if p.method == other}
    found = []
    for point in chosen:
        against = others.get((point.problem, point.seed))
        if point.method == method and against is not None:
            both_fail = math.isinf(point.step_time) and math.isinf(against)
            found.append((point, 1.0 if both_fail else point.step_time / against))
    return found


def _time(run: Mapping[str, Any]) -> float:
    time = run.get("step_time")
    return float(time) if time is not None and run["feasible"] else math.inf
