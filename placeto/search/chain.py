"""Where a chain of annealing stands, whatever it makes small."""

from typing import NamedTuple

from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner

# Columns of `Chain.numbers`: what the present placement costs, the best one's rank and seconds,
# placements evaluated.
COST, BEST_RANK, BEST_STEP_TIME, EVALUATIONS = range(4)
EVENLY = 0.3  # the share of proposals whose kind is drawn evenly
MEMORY = 500.0  # proposals of a kind after which earlier ones count half
SMALLEST = 1e-300


class Chain(NamedTuple):
    """Where a chain stands."""

    present: Ints  # (num_groups,) devices
    best: Ints  # (num_groups,) the placement of lowest rank that it has accepted
    best_peak: Ints  # (num_devices,) bytes of that
    numbers: Floats  # (4,)
    tried: Floats  # (NUM_MOVES,) how often each kind was proposed; earlier ones count less
    gained: Floats  # (NUM_MOVES,) how often that was accepted and cheaper, likewise


@inner(cache=True)
def count_try(chain: Chain, kind: int) -> None:
    """Counts a placement that was evaluated, proposed by a move of this kind."""
    chain.numbers[EVALUATIONS] += 1
    chain.tried[kind] += 1
    if chain.tried[kind] > MEMORY:
        chain.tried[kind] /= 2
        chain.gained[kind] /= 2


@inner(cache=True)
def copy(source: Ints, target: Ints) -> None:
    """Copies numbers; numba's slices take seconds to compile, for what they say if sizes differ."""
    for index in range(len(source)):
        target[index] = source[index]


@inner(cache=True)
def same(one: Ints, other: Ints) -> bool:
    """Whether all numbers are the same."""
    for index in range(len(one)):  # noqa: SIM110, numba's `all` needs a generator
        if one[index] != other[index]:
            return False
    return True
