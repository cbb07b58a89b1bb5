"""What the placers that need no search make of a problem: what a placement is compared with."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from placeto.placement import Placement
from placeto.placers import PLACERS, place
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Clock
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent

POLICY = "placeto"
FIRST = ("single", "expert", "etf", "heft")
WITH_POLICY = ("auto", POLICY)  # whose compiled code the policy's placer shares
# The policy's likeliest devices, without a search or a training.
GREEDY: dict[str, object] = {"samples": 0, "fine_tune": 0.0}


@dataclass(frozen=True)
class Others:
    """What other placers found: one placement a placer; of those that have none, why."""

    placements: tuple[Placement, ...]
    left_out: dict[str, str]


def quick_placers(method: str) -> list[str]:
    """The placers that end by themselves; those that `auto` is made of first.

    The trained policy is among them if the placement is by `auto` or the policy.
    """
    parts = [*FIRST, POLICY] if method in WITH_POLICY else FIRST
    rest = [name for name, placer in PLACERS.items() if not placer.anytime]
    return list(dict.fromkeys([*parts, *rest]))


def place_quickly(problem: PlacementProblem, method: str, seed: int) -> Placement:
    """What a quick placer finds; of the policy its likeliest devices.

    Raises:
        PlacetoError: the placer finds nothing.
        KeyboardInterrupt: after Ctrl-C, also where the placer has found something until then.
    """
    placement = place(problem, method, seed=seed, settings=GREEDY if method == POLICY else None)
    if placement.interrupted:
        raise KeyboardInterrupt
    return placement


def is_quick(placement: Placement) -> bool:
    """Whether `place_quickly` would run its placer as it was run."""
    if placement.method == POLICY:
        return dict(placement.settings) == GREEDY
    return placement.method in PLACERS and not PLACERS[placement.method].anytime


def others(
    problem: PlacementProblem,
    methods: Sequence[str],
    seed: int = 0,
    budget_seconds: float = 5.0,
    progress: Progress = silent,
    clock: Clock = time.monotonic,
) -> Others:
    """Runs placers of `quick_placers` one after the other; the time spent, no further one begins.

    Args:
        problem: what is placed.
        methods: the placers.
        seed: where their random numbers start.
        budget_seconds: after which the others are left out.
        progress: told which one runs.
        clock: tells seconds.
    """
    end = clock() + budget_seconds
    placements: list[Placement] = []
    left_out: dict[str, str] = {}
    for method in methods:
        if clock() >= end:
            left_out[method] = f"the {budget_seconds:g} s for the other placers were spent"
            continue
        progress(f"placing by {method}")
        try:
            placements.append(place_quickly(problem, method, seed))
        except PlacetoError as error:
            left_out[method] = str(error)
    return Others(tuple(placements), left_out)
