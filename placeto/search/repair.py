"""What every search starts from: heuristics, offered, and repaired where memory overflows."""

from contextlib import suppress

import numpy as np

from placeto.bounds.memory import infeasibility
from placeto.heuristics.costs import exchanged_bytes
from placeto.heuristics.table import HEURISTICS
from placeto.objective import overflow
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.errors import NotApplicable

STARTS = ("single", "expert", "etf", "heft")
STARTS_OF_PIPELINES = ("single", "expert", "metis", "scotch", "stages", "etf", "heft")
MAX_ROUNDS = 50
MAX_MOVES = 300
MAX_TRIED = 64  # moves in one round of trials
RESTING_ROUNDS = 20  # that a group stays where a trial has put it
STARTS_SHARE = 0.3  # of the budget; after it, of each batch of a heuristic only the first
WELCOME_SHARE = 0.1  # of what is left of the budget, for a repair that is not needed
CELLS_AT_ONCE = 2**22  # of a batch of placements, which is to be small beside the problem


def offer_heuristic(
    incumbent: Incumbent, rng: np.random.Generator, name: str, share: float = 1.0
) -> None:
    """Offers what a heuristic finds, unless `NotApplicable`; no batch once the budget is spent.

    Once a share of the budget is spent, of each batch only the first.
    """
    heuristic = HEURISTICS[name]
    left = max(incumbent.budget_seconds - incumbent.seconds, 0.0)
    until = share * incumbent.budget_seconds
    for batch in heuristic.placements(incumbent.problem, rng, left, incumbent.progress):
        # One by one: to run a few over all cores is not worth compiling that.
        offer = offer_repaired if heuristic.repaired else Incumbent.offer
        for number, devices in enumerate(batch):
            if number == 0 or incumbent.seconds < until:
                offer(incumbent, devices)
        if incumbent.expired:
            return


def offer_starts(
    incumbent: Incumbent, rng: np.random.Generator, max_evaluations: int | None = None
) -> bool:
    """Offers what the usual heuristics find, one after the other; the `part` is the one at work.

    Returns:
        Whether any of the budget is left; not if so many placements, if limited, were simulated.
    """
    problem = incumbent.problem
    pipelined = problem.graph.num_microbatches > 1 or problem.objective == "throughput"
    for name in STARTS_OF_PIPELINES if pipelined else STARTS:
        incumbent.part = name
        with suppress(NotApplicable):
            offer_heuristic(incumbent, rng, name, STARTS_SHARE)
        if incumbent.share_spent(max_evaluations) >= 1 or incumbent.expired:
            return False
    return True


def offer_repaired(incumbent: Incumbent, devices: Ints) -> None:
    """Offers a placement; if it does not fit in memory, what becomes of it by moving groups too.

    Every group is where it may be. They leave the devices whose simulated peak exceeds the memory.
    First, round after round, as many as it takes move to devices whose peak leaves room for them,
    those first whose move adds the fewest bytes of transfers for a byte that it frees. A group is
    reckoned to take the share of its counted memory (`group_memory`) that its device's peak is of
    the counted memory of all of its groups; it never returns to a device that it has left. When
    none has room left, single moves are simulated, from the placement that had least above the
    limits, and of these the one is made that leaves least, again and again, even if that is more
    than before: a tabu search (Glover 1986), in which a group that has moved rests for some rounds.
    It ends with a placement that fits, after `MAX_MOVES`, when the budget is spent, or at once
    where provably nothing fits. Where the incumbent has one that fits already, a repair may take a
    tenth of what is left of the budget: it can take longer than all else, and is not needed then.
    """
    problem = incumbent.problem
    share = WELCOME_SHARE if incumbent.feasible else 1.0
    until = incumbent.seconds + share * (incumbent.budget_seconds - incumbent.seconds)
    open_to = problem.allowed.copy()
    best, best_peak = devices, problem.memory_limit
    for round_number in range(MAX_ROUNDS):
        if round_number and incumbent.seconds >= until:
            return
        outcome = incumbent.offer_many(devices[None])
        if outcome.feasible[0]:
            return
        peak = outcome.peak_memory[0]
        if round_number == 0 or overflow(problem, peak) < overflow(problem, best_peak):
            best, best_peak = devices, peak
        relieved = _relieved(problem, devices, peak, open_to)
        if (relieved == devices).all():
            break
        devices = relieved
    if infeasibility(problem) is not None:
        return
    wakes = np.zeros(problem.num_groups, dtype=np.int64)
    for round_number in range(MAX_MOVES):
        if incumbent.seconds >= until:
            return
        moved, moved_peak = _best_move(incumbent, best, best_peak, wakes <= round_number, until)
        if moved is None and wakes.max() > round_number:
            wakes[:] = 0
            continue
        if moved is None or overflow(problem, moved_peak) == 0:
            return
        wakes[moved != best] = round_number + 1 + RESTING_ROUNDS
        best, best_peak = moved, moved_peak


def _relieved(problem: PlacementProblem, devices: Ints, peak: Ints, open_to: Bools) -> Ints:
    """The placement after one round; closes in `open_to` what the moved groups leave."""
    moved = devices.copy()
    counted = np.bincount(devices, weights=problem.group_memory, minlength=problem.num_devices)
    alive = np.minimum(peak / np.maximum(counted, 1), 1.0)
    room = (problem.memory_limit - peak).astype(np.float64)
    exchanged = exchanged_bytes(problem, devices)
    for device in np.argsort(room):
        if room[device] >= 0:
            break
        groups = np.flatnonzero((devices == device) & (problem.group_memory > 0))
        need = problem.group_memory[groups] * alive[device]
        price = _prices(exchanged[groups], need, open_to[groups], devices[groups]).min(axis=1)
        for index in np.argsort(price, kind="stable"):
            if room[device] >= 0:
                break
            group = groups[index]
            fits = open_to[group] & (room >= need[index])
            if fits.any():
                target = int(np.where(fits, exchanged[group], -1).argmax())
                moved[group] = target
                open_to[group, device] = False
                room[target] -= need[index]
                room[device] += need[index]
    return moved


def _best_move(
    incumbent: Incumbent, devices: Ints, peak: Ints, awake: Bools, until: float
) -> tuple[Ints | None, Ints]:
    """The move of one group off an overfull device that leaves least above the limits.

    Only groups that are awake move. The peaks are (num_devices,) bytes.

    Returns:
        The placement after it, and its peaks; None if there is no move to try, or the incumbent's
        clock is past `until`, in seconds.
    """
    problem = incumbent.problem
    groups = np.flatnonzero(awake & (peak > problem.memory_limit)[devices])
    exchanged, freed = exchanged_bytes(problem, devices)[groups], problem.group_memory[groups] + 1
    prices = _prices(exchanged, freed, problem.allowed[groups], devices[groups])
    rows, targets = np.nonzero(np.isfinite(prices))
    cheapest = np.lexsort((targets, rows, prices[rows, targets]))[:MAX_TRIED]
    best, best_peak = None, peak
    together = max(1, CELLS_AT_ONCE // problem.num_groups)
    for begin in range(0, len(cheapest), together):
        if incumbent.seconds >= until:
            break
        chosen = cheapest[begin : begin + together]
        many = np.tile(devices, (len(chosen), 1))
        many[np.arange(len(chosen)), groups[rows[chosen]]] = targets[chosen]
        peaks = incumbent.offer_many(many).peak_memory
        least = int(overflow(problem, peaks).argmin())
        if best is None or overflow(problem, peaks[least]) < overflow(problem, best_peak):
            best, best_peak = many[least], peaks[least]
    return best, best_peak


def _prices(exchanged: Ints, freed: Floats | Ints, open_to: Bools, here: Ints) -> Floats:
    """(n, num_devices) bytes of transfers that moves of n groups add for each byte freed here.

    Infinite where a group may not go.
    """
    rows = np.arange(len(here))
    added = exchanged[rows, here, None] - exchanged
    prices = np.where(open_to, added / freed[:, None], np.inf)
    prices[rows, here] = np.inf
    return prices
