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


# Takes what is decoded for, a policy made ready for it, and where episodes start; is told after
# each batch.
Decode = Callable[[Incumbent, CompiledPolicy, Ints, Generator, Draws, Callable[[], None]], None]


def several_starts(
    incumbent: Incumbent,
    ready: CompiledPolicy,
    single: Ints,
    rng: Generator,
    draws: Draws,
    done: Callable[[], None],
) -> None:
    """Four sweeps, each drawn less than the one before, from one device and random placements.

    In turn from one device, as it has learned, and from the best placement known.
    """

    def batch(number: int, samples: int) -> None:
        later = number % 2 == 1
        start = incumbent.best if later else single
        starts = policy.scattered(incumbent.problem, start, rng, samples)
        scales = tuple(draws.temperature * scale for scale in policy.FOUR_SWEEPS)
        policy.offer_drawn(incumbent, ready, starts, rng, scales, later)

    _batches(incumbent, draws, batch, done)


def sampling(
    incumbent: Incumbent,
    ready: CompiledPolicy,
    single: Ints,
    rng: Generator,
    draws: Draws,
    done: Callable[[], None],
) -> None:
    """One sweep from one device, whose devices are drawn at a temperature."""

    def batch(number: int, samples: int) -> None:
        starts = np.tile(single, (samples, 1))
        policy.offer_drawn(incumbent, ready, starts, rng, (draws.temperature,))

    _batches(incumbent, draws, batch, done)


def mirrored(
    incumbent: Incumbent,
    ready: CompiledPolicy,
    single: Ints,
    rng: Generator,
    draws: Draws,
    done: Callable[[], None],
) -> None:
    """Greedy sweeps from every single device, then from the best with like devices exchanged.

    As routing solvers turn and mirror their maps (Kwon et al. 2020, arXiv:2010.16011). Where
    channels are alike, too, all copies are the same to the policy.
    """
    problem = incumbent.problem
    for start in single_devices(problem):
        policy.offer_greedy(incumbent, ready, start)
        if incumbent.expired:
            return
    done()

    def batch(number: int, samples: int) -> None:
        orders = np.stack([exchanged(problem.cluster.devices, rng) for _ in range(samples)])
        copies = orders[:, incumbent.best]
        allowed = problem.allowed[np.arange(problem.num_groups), copies]
        starts = np.where(allowed, copies, incumbent.best)
        policy.offer_drawn(incumbent, ready, starts, rng, (0.0, 0.0), later=True)

    _batches(incumbent, draws, batch, done)


def beam(
    incumbent: Incumbent,
    ready: CompiledPolicy,
    single: Ints,
    rng: Generator,
    draws: Draws,
    done: Callable[[], None],
) -> None:
    """A beam of placements, from the best, through stretches of the groups.

    In each stretch every placement has children, one greedy, the others drawn; the fastest
    different ones go on. After simulation-guided beam search (Choo et al. 2022, arXiv:2207.06190),
    whose roll-outs are not needed: each state is a placement, and simulated.
    """
    problem = incumbent.problem
    kept = incumbent.best[None]

    def batch(number: int, samples: int) -> None:
        nonlocal kept
        for part in np.array_split(problem.group_order, min(STRETCHES, problem.num_groups)):
            starts = np.repeat(kept, CHILDREN, axis=0)
            noise = rng.gumbel(size=(len(part), len(starts), problem.num_devices))
            noise[:, ::CHILDREN] = 0.0
            played = policy.offer_played(
                incumbent, ready, starts, draws.temperature * noise, True, part
            )
            different = np.unique(played.best, axis=0, return_index=True)[1]
            fastest = different[np.argsort(played.best_cost[different], kind="stable")]
            kept = played.best[fastest[:samples]]
            if incumbent.expired:
                return
        if number % 2 == 1:  # the beam may have come to where nothing is left to gain
            kept = incumbent.best[None]

    _batches(incumbent, draws, batch, done)


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


def _batches(
    incumbent: Incumbent,
    draws: Draws,
    batch: Callable[[int, int], None],
    done: Callable[[], None],
) -> None:
    """Runs batches, of as many samples as take `BATCH_SECONDS`, or of all if they are counted."""
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
        done()
