"""The searches of all rounds, and which of what they found is worth a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from placeto.measurement.trials.bench import MOST_RUNS_OF_ONE, Bench
from placeto.measurement.trials.candidate import Candidate, differ, noise
from placeto.placement import Placement
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.simulation import simulate_many, step_times
from placeto.simulation.scaled import scaled_problem
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress

NEW_A_ROUND = 3  # of which the last is where models disagree
AGAIN_A_ROUND = 2
RUNS_A_ROUND = NEW_A_ROUND + AGAIN_A_ROUND
COSTLY = 1.5  # factor of all that transfers cost, of a model that may be right
FIRST_SHARE = 0.5  # of the seconds, for the first search
COSTLY_SHARE = 0.3  # of the first search's, where transfers are costly
# How far off predictions are before anything ran, in logarithms, and how many runs that is worth.
PRIOR_ERROR, PRIOR_RUNS = 0.05, 2


@dataclass(eq=False)
class Search:
    """The searches of all rounds, and what they found."""

    problem: PlacementProblem
    method: str
    budget_seconds: float
    seed: int
    settings: Mapping[str, object] | None
    runs: int
    progress: Progress
    placement: Placement | None = None  # the first
    evaluations: int = 0
    found: list[Candidate] = field(default_factory=list)
    seconds_left: float = field(init=False)

    def __post_init__(self) -> None:
        self.seconds_left = self.budget_seconds

    def go(self, corrected: PlacementProblem) -> None:
        """Searches with corrected costs; in the first round with costly transfers, too.

        Later rounds go on from what was found until then and is fastest by these costs.
        """
        if self.placement is None:
            first = self.budget_seconds * FIRST_SHARE
            self._search(corrected, first * (1 - COSTLY_SHARE))
            self._search(costly(corrected), first * COSTLY_SHARE)
            self.seconds_left -= first
        elif self.seconds_left > 0:
            rounds = max(self.runs / RUNS_A_ROUND - 1, 1)
            share = self.budget_seconds * (1 - FIRST_SHARE) / rounds
            many = np.stack([each.devices for each in self.found])
            start = many[step_times(corrected, many).argmin()]
            self._search(corrected, min(share, self.seconds_left), start)
            self.seconds_left -= share

    def go_on(self, corrected: PlacementProblem) -> bool:
        """Searches for all the seconds that are left; whether there were any."""
        if self.seconds_left <= 0:
            return False
        self._search(corrected, self.seconds_left)
        self.seconds_left = 0.0
        return True

    def _search(self, problem: PlacementProblem, seconds: float, start: Ints | None = None) -> None:
        try:
            found = place(
                problem, self.method, seconds, self.seed, self.progress, self.settings, start=start
            )
        except PlacetoError:
            if self.placement is None:
                raise
            return  # too little time for this one
        self.evaluations += found.evaluations
        self.seed += 1
        many = np.stack([found.devices, *found.candidates])
        outcomes = simulate_many(self.problem, many)
        simulated = outcomes.step_time.tolist()
        for devices, step_time, fits in zip(many, simulated, outcomes.feasible, strict=True):
            known = any(np.array_equal(devices, each.devices) for each in self.found)
            if not known and (fits or self.placement is None):
                self.found.append(Candidate(devices, found.found_by, step_time))
        if self.placement is None:
            self.placement = found
        if found.interrupted:
            raise KeyboardInterrupt


def worth_running(
    search: Search, bench: Bench, corrected: PlacementProblem, *, first: bool
) -> list[Candidate]:
    """Those found and not yet run of which a run is expected to gain more than the noise.

    Predictions are off by as much as those of what ran were, so that one that is no faster than the
    fastest by the costs may well be when it is run: what counts is the expected improvement (Jones,
    Schonlau & Welch 1998). The first round takes the fastest whatever is predicted: nothing that
    was measured says yet that the predictions can be believed.
    """
    problem, best = bench.problem, bench.best
    tried = [each.devices for each in bench.candidates]
    pool = [each for each in search.found if differ(problem, each.devices, tried)]
    if not pool:
        return []
    many = np.stack([each.devices for each in pool])
    models = (corrected, problem, costly(corrected))
    if best is None:
        shares, errors = np.stack([step_times(model, many) for model in models]), np.zeros(3)
    else:
        predicted = [_shares(model, many, bench, best) for model in models]
        shares = np.stack([share for share, _ in predicted])
        errors = np.array([error for _, error in predicted])
    # Of as many runs as one may have, the median is as much surer as their root says.
    least = noise(bench.candidates) / MOST_RUNS_OF_ONE**0.5
    picked: list[int] = []

    def pick(indices: Sequence[int], most: int, gains: Floats) -> None:
        for index in indices:
            others = [many[other] for other in picked]
            hopeful = len(picked) < most and (first or gains[index] > least)
            if hopeful and differ(problem, many[index], others):
                picked.append(index)

    gains = np.stack([_gain(*each) for each in zip(shares, errors, strict=True)])
    pick(np.argsort(shares[0], kind="stable").tolist(), NEW_A_ROUND - 1, gains[0])
    spread = np.log(shares.max(axis=0) / shares.min(axis=0))
    pick(np.argsort(-spread, kind="stable").tolist(), len(picked) + 1, gains.max(axis=0))
    return [pool[index] for index in picked]


def costly(problem: PlacementProblem) -> PlacementProblem:
    """The problem where transfers cost half as much again."""
    return scaled_problem(problem, bandwidth=1 / COSTLY, latency=COSTLY, ends=COSTLY)


def _shares(
    problem: PlacementProblem, many: Ints, bench: Bench, best: Candidate
) -> tuple[Floats, float]:
    """What placements are expected to take, and how far off that may be.

    Returns:
        (n,) shares of what the fastest that ran takes, and the spread of their logarithms.
    """
    ran = [each for each in bench.candidates if each.ran]
    # What has no transfers says nothing of how wrong a model is about them.
    ran = [each for each in ran if each is not bench.reference] or ran
    known = np.stack([each.devices for each in ran])
    seconds = np.log(np.maximum(step_times(problem, np.concatenate([many, known])), 1e-12))
    off = np.log([each.ratio for each in ran]) - seconds[len(many) :]
    squares = float(np.sum((off - off.mean()) ** 2)) + PRIOR_RUNS * PRIOR_ERROR**2
    error = (squares / (len(ran) - 1 + PRIOR_RUNS)) ** 0.5
    return np.exp(seconds[: len(many)] + off.mean() - np.log(best.ratio)), error


def _gain(shares: Floats, error: float) -> Floats:
    """(n,) by how much, in logarithms, a run is expected to be faster than the fastest so far."""
    from scipy.stats import norm

    ahead = -np.log(shares)
    sure = ahead / max(error, 1e-12)
    return np.asarray(ahead * norm.cdf(sure) + error * norm.pdf(sure))
