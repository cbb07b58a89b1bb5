"""What the search tries next: moves drawn evenly, and moves that the policy would make."""

from typing import NamedTuple

import numpy as np

from placeto.envs.features.pairs import (
    BINS,
    GROUP_FEATURES,
    PAIR_FEATURES,
    TINY,
    busy_profile,
    observe,
)
from placeto.models.placeto.play import CompiledPolicy, distinct
from placeto.models.placeto.scoring import score
from placeto.search.moves import NUM_MOVES, Move, Neighbourhood, move_around
from placeto.simulation.compiled import Compiled
from placeto.simulation.state import State
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.jit import inner

# Kinds of proposals: the moves, drawn evenly; then those of `GUIDED`, whose group and device the
# policy chooses.
GUIDED = (
    int(Move.SINGLE), int(Move.RUN), int(Move.PART), int(Move.EXCHANGE), int(Move.REGION),
    int(Move.CLUSTER),
)  # fmt: skip
NUM_KINDS = NUM_MOVES + len(GUIDED)
PRIOR = 0.01  # gains a try, of a kind that was not tried yet
ASKED = 4  # groups of which the policy tells which had best move


class Opinion(NamedTuple):
    """What the policy says of the present schedule, so far as it was asked; and room to ask."""

    logits: Floats  # (num_groups, num_devices)
    known: Bools  # (num_groups,) whether it was asked of the group
    surveyed: Bools  # (1,) whether the next two are of this schedule
    busy: Floats  # (num_devices, BINS + 1), see `busy_profile`
    load: Floats  # (num_devices, 2), likewise
    decided: Bools  # (num_groups,) all true: the search is no sweep
    pairs: Features  # (num_devices, PAIR_FEATURES)
    groups: Features  # (GROUP_FEATURES,)
    choices: Bools  # (num_devices,)


@inner(cache=True)
def no_opinion(num_groups: int, num_devices: int) -> Opinion:
    """Nothing was asked yet."""
    known, surveyed = np.zeros(num_groups, np.bool_), np.zeros(1, np.bool_)
    busy, load = np.empty((num_devices, BINS + 1)), np.empty((num_devices, 2))
    pairs = np.empty((num_devices, PAIR_FEATURES), np.float32)
    groups, choices = np.empty(GROUP_FEATURES, np.float32), np.empty(num_devices, np.bool_)
    logits, decided = np.empty((num_groups, num_devices)), np.ones(num_groups, np.bool_)
    return Opinion(logits, known, surveyed, busy, load, decided, pairs, groups, choices)


@inner(cache=True)
def forget(opinion: Opinion) -> None:
    """The schedule is another: what was asked is worth nothing."""
    opinion.known[:] = False
    opinion.surveyed[0] = False


@inner(cache=True)
def draw_kind(
    tried: Floats, gained: Floats, kinds: int, evenly: float, rng: np.random.Generator
) -> int:
    """Draws one of so many kinds of proposals, the likelier the oftener it was tried and gained.

    `evenly` is the chance that all are equally likely.
    """
    if rng.random() < evenly:
        return int(rng.random() * kinds)
    total = 0.0
    for kind in range(kinds):
        total += (gained[kind] + PRIOR) / (tried[kind] + 1)
    point = rng.random() * total
    for kind in range(kinds):
        point -= (gained[kind] + PRIOR) / (tried[kind] + 1)
        if point < 0:
            return kind
    return kinds - 1


@inner(cache=True)
def propose_guided(
    c: Compiled,
    guide: CompiledPolicy,
    space: Neighbourhood,
    s: State,
    step_time: float,
    peak: Ints,
    opinion: Opinion,
    kind: int,
    devices: Ints,
    rng: np.random.Generator,
) -> None:
    """Moves groups of a placement where the policy would have one of them, if it would any.

    Args:
        c: the compiled problem.
        guide: the policy.
        space: what moves are drawn from; at least one group is movable.
        s: the placement's simulation at its end, with the starts of ops.
        step_time: of that, in seconds.
        peak: (num_devices,) bytes.
        opinion: of this simulation; more of it is asked for.
        kind: one of `GUIDED`.
        devices: (num_groups,) the placement.
        rng: draws.
    """
    step_time = max(step_time, TINY)
    if not opinion.surveyed[0]:
        busy_profile(c, guide.group_index, s, step_time, opinion.busy, opinion.load)
        opinion.surveyed[0] = True
    group, there, highest = -1, -1, -np.inf
    for _ in range(ASKED):
        asked = space.movable[int(rng.random() * len(space.movable))]
        logits = opinion.logits[asked]
        if not opinion.known[asked]:
            _ask(c, guide, s, step_time, peak, opinion, asked, logits)
        here = devices[asked]
        for device in range(len(logits)):
            if device != here and logits[device] > -np.inf:
                gumbel = -np.log(-np.log(max(rng.random(), TINY)))
                value = logits[device] - logits[here] + gumbel
                if value > highest:
                    group, there, highest = asked, device, value
    if group >= 0:
        move_around(space, devices, kind, group, there, rng)


@inner(cache=True)
def _ask(
    c: Compiled,
    guide: CompiledPolicy,
    s: State,
    step_time: float,
    peak: Ints,
    o: Opinion,
    group: int,
    logits: Floats,
) -> None:
    w = guide.group_index
    observe(
        c, w, s, step_time, peak, o.busy, o.load, group, o.decided, True, o.pairs, o.groups
    )  # fmt: skip
    distinct(o.pairs, w.allowed[group], o.choices)
    score(guide.weights, o.pairs, o.groups, guide.table[group], o.choices, logits)
    o.known[group] = True
