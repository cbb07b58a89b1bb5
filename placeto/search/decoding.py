"""Ways to decode a policy: how placements are drawn from what it says of single groups.

One interface for all: a decoding offers placements to an incumbent until that is expired, or until
it has nothing more to offer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from placeto.cluster import Device
from placeto.heuristics.initial import single_devices
from placeto.models.placeto.play import CompiledPolicy
from placeto.search import policy
from placeto.search.incumbent import Incumbent
from placeto.support.arrays import Ints

BATCH_SECONDS = 0.5  # of drawn episodes at once, so that a budget or Ctrl-C ends them soon
FIRST_SAMPLES = 4  # before it is known how long one takes
STRETCHES = 16  # of the groups, after each of which a beam is cut
CHILDREN = 4  # of each placement of a beam


@dataclass(frozen=True)
class Draws:
    """What decodings are told.

    Attributes:
        samples: episodes at once, at most; of a beam, placements in it.
        temperature: 1 to draw devices as likely as the policy has them, less for likelier ones.
        batches: how often; 0 until the incumbent is expired, or until that time.
        until: seconds of the incumbent after which no more are begun.
    """

    samples: int = 16
    temperature: float = 1.0
    batches: int = 0
    until: float = math.inf


@dataclass(frozen=True)
class Case:
    """What is decoded, and for whom.

    Attributes:
        incumbent: is offered all placements.
        ready: the policy, made ready for its problem.
        single: (num_groups,) the best single device, where episodes start.
        rng: draws all that is random.
        draws: how much is drawn.
        done: told after each batch.
    """

    incumbent: Incumbent
    ready: CompiledPolicy
    single: Ints
    rng: Generator
    draws: Draws
    done: Callable[[], None]


Decode = Callable[[Case], None]


def several_starts(case: Case) -> None:
    """Four sweeps, each drawn less than the one before, from one device and random placements.

    In turn from one device, as it has learned, and from the best placement known.
    """

    def batch(number: int, samples: int) -> None:
        later = number % 2 == 1
        start = case.incumbent.best if later else case.single
        starts = policy.scattered(case.incumbent.problem, start, case.rng, samples)
        scales = tuple(case.draws.temperature * scale for scale in policy.FOUR_SWEEPS)
        policy.offer_drawn(case.incumbent, case.ready, starts, case.rng, scales, later)

    _batches(case, batch)


def sampling(case: Case) -> None:
    """One sweep from one device, whose devices are drawn at a temperature."""

    def batch(number: int, samples: int) -> None:
        starts = np.tile(case.single, (samples, 1))
        policy.offer_drawn(case.incumbent, case.ready, starts, case.rng, (case.draws.temperature,))

    _batches(case, batch)


def mirrored(case: Case) -> None:
    """Greedy sweeps from every single device, then from the best with like devices exchanged.

    As routing solvers turn and mirror their maps (Kwon et al. 2020, arXiv:2010.16011). Where
    channels are alike, too, all copies are the same to the policy.
    """
    problem = case.incumbent.problem
    for start in single_devices(problem):
        policy.offer_greedy(case.incumbent, case.ready, start)
        if case.incumbent.expired:
            return
    case.done()

    def batch(number: int, samples: int) -> None:
        orders = np.stack([exchanged(problem.cluster.devices, case.rng) for _ in range(samples)])
        copies = orders[:, case.incumbent.best]
        allowed = problem.allowed[np.arange(problem.num_groups), copies]
        starts = np.where(allowed, copies, case.incumbent.best)
        policy.offer_drawn(case.incumbent, case.ready, starts, case.rng, (0.0, 0.0), later=True)

    _batches(case, batch)


def beam(case: Case) -> None:
    """A beam of placements, from the best, through stretches of the groups.

    In each stretch every placement has children, one greedy, the others drawn; the fastest
    different ones go on. After simulation-guided beam search (Choo et al. 2022, arXiv:2207.06190),
    whose roll-outs are not needed: each state is a placement, and simulated.
    """
    problem = case.incumbent.problem
    kept = case.incumbent.best[None]

    def batch(number: int, samples: int) -> None:
        nonlocal kept
        for part in np.array_split(problem.group_order, min(STRETCHES, problem.num_groups)):
            starts = np.repeat(kept, CHILDREN, axis=0)
            noise = case.rng.gumbel(size=(len(part), len(starts), problem.num_devices))
            noise[:, ::CHILDREN] = 0.0
            played = policy.offer_played(
                case.incumbent, case.ready, starts, case.draws.temperature * noise, True, part
            )
            different = np.unique(played.best, axis=0, return_index=True)[1]
            fastest = different[np.argsort(played.best_cost[different], kind="stable")]
            kept = played.best[fastest[:samples]]
            if case.incumbent.expired:
                return
        if number % 2 == 1:  # the beam may have come to where nothing is left to gain
            kept = case.incumbent.best[None]

    _batches(case, batch)


def exchanged(devices: Sequence[Device], rng: Generator) -> Ints:
    """(num_devices,) a device for each, with like ones exchanged at random."""
    result = np.arange(len(devices))
    alike = [device.likeness for device in devices]
    for likeness in dict.fromkeys(alike):
        members = np.flatnonzero([other == likeness for other in alike])
        result[members] = rng.permutation(members)
    return result


DECODINGS: dict[str, Decode] = {
    "sampling": sampling,
    "starts": several_starts,
    "mirrored": mirrored,
    "beam": beam,
}


def _batches(case: Case, batch: Callable[[int, int], None]) -> None:
    """Runs batches, of as many samples as take `BATCH_SECONDS`, or of all if they are counted."""
    incumbent, draws = case.incumbent, case.draws
    timed = not draws.batches  # a number of batches is told to get the same placement again
    samples = min(draws.samples, FIRST_SAMPLES) if timed else draws.samples
    number = 0
    while draws.samples and not incumbent.expired and number != (draws.batches or -1):
        began = incumbent.seconds
        if timed and began >= draws.until:
            return
        batch(number, samples)
        number += 1
        if timed:
            seconds = max(incumbent.seconds - began, 1e-9)
            samples = max(min(int(samples * BATCH_SECONDS / seconds), draws.samples), 1)
        case.done()
