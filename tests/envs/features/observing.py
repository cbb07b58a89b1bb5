"""What `placeto.envs.features.pairs` sees of a placement, group by group."""

from collections.abc import Iterable

import numpy as np

from placeto import PlacementProblem
from placeto.envs.features import pairs
from placeto.envs.features.pairs import BINS, GROUP_FEATURES, PAIR_FEATURES, TINY, group_index
from placeto.simulation.reduction import compiled
from placeto.simulation.state import OPS, borrowed, state_in
from tests.compiled import advance, begin, from_python, read

observe = from_python(pairs.observe)
busy_profile = from_python(pairs.busy_profile)


def observed(
    problem: PlacementProblem,
    devices: Iterable[int],
    visited: Iterable[int] = (),
    later: bool = False,
    only: Iterable[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(num_groups, num_devices, PAIR_FEATURES) and (num_groups, GROUP_FEATURES).

    Of `only` some groups if they are given; the rows of the others hold sevens.
    """
    reduction, w, groups = compiled(problem), group_index(problem), problem.num_groups
    c, num_devices = reduction.compiled, problem.num_devices
    seen = np.zeros(groups, dtype=bool)
    seen[list(visited)] = True
    # What is filled is filled whole: nothing of an earlier call may shine through.
    pairs = np.full((groups, num_devices, PAIR_FEATURES), 7, dtype=np.float32)
    rows = np.full((groups, GROUP_FEATURES), 7, dtype=np.float32)
    busy, load = np.full((num_devices, BINS + 1), 7.0), np.full((num_devices, 2), 7.0)
    peak = np.empty(num_devices, dtype=np.int64)
    with borrowed(reduction, 1) as states:
        s = state_in(c, states[0])
        begin(c, np.array(list(devices), dtype=np.int64), s)
        advance(c, s, 0, OPS)
        step_time = max(read(s, peak, np.empty(0)), TINY)
        busy_profile(c, w, s, step_time, busy, load)
        for group in range(groups) if only is None else only:
            observe(
                c, w, s, step_time, peak, busy, load, group, seen, later, pairs[group], rows[group]
            )
    return pairs, rows
