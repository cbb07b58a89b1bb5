"""What the present schedule says of one group on each device, for a batch of episodes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from placeto.envs.features.pairs import (
    BINS,
    GROUP_FEATURES,
    PAIR_FEATURES,
    TINY,
    Group,
    GroupIndex,
    Pair,
    busy_profile,
    group_index,
    observe,
)
from placeto.problem import PlacementProblem
from placeto.simulation.reduction import compiled
from placeto.simulation.simulate import Outcomes, run_many
from placeto.simulation.state import Buffers, Compiled, buffers, view
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.beside import wait_for
from placeto.support.jit import njit

DEVICE_FEATURES = PAIR_FEATURES + GROUP_FEATURES


def device_feature_names() -> Sequence[str]:
    """(DEVICE_FEATURES,) the columns of `device_features`: of the pair, then of the group alone."""
    pairs = [column.name.lower() for column in Pair]
    return [*pairs, *(f"group_{column.name.lower()}" for column in Group)]


class Kept(NamedTuple):
    """What is kept of a batch of schedules."""

    surveyed: Bools  # (batch,) whether the next two are of the present ones
    busy: Floats  # (batch, num_devices, BINS + 1), see `busy_profile`
    load: Floats  # (batch, num_devices, 2), likewise


class Schedules:
    """Simulated schedules of a batch of placements of one problem, and what they say.

    Args:
        problem: what is placed.
        batch: how many placements.
        simulates: whether they will be simulated, for which the kernel has to be compiled.
    """

    def __init__(self, problem: PlacementProblem, batch: int, *, simulates: bool = True) -> None:
        self._compiled = compiled(problem, kernel=simulates).compiled
        self._wiring = group_index(problem)
        self._states = buffers(self._compiled, batch)
        self._kept = Kept(
            surveyed=np.zeros(batch, dtype=bool),
            busy=np.zeros((batch, problem.num_devices, BINS + 1)),
            load=np.zeros((batch, problem.num_devices, 2)),
        )

    def simulate(self, rows: Ints, devices: Ints, columns: Outcomes) -> None:
        """Simulates the placements of some rows, whose schedules are kept.

        Args:
            rows: (n,) which.
            devices: (batch, num_groups).
            columns: (batch, …) filled in these rows.
        """
        run_many(self._compiled, rows, devices, self._states, columns, apart=True)
        self._kept.surveyed[rows] = False

    def write(
        self,
        rows: Ints,
        columns: Outcomes,
        current: Ints,
        visited: Bools,
        taken: Ints,
        written: Features,
    ) -> None:
        """Writes the device features of some rows, each of the placement simulated last.

        Args:
            rows: (n,) which.
            columns: what their simulations found.
            current: (batch,) groups.
            visited: (batch, at least num_groups) which groups were visited in the episode.
            taken: (batch,) steps behind each episode.
            written: (batch, num_devices, DEVICE_FEATURES) filled in these rows.
        """
        run = _observe_over_cores if len(rows) > 1 else observe_devices
        told = (current, visited, taken, written)
        wait_for("features")
        run(self._compiled, self._wiring, rows, self._states, columns, self._kept, told)


@njit(cache=True, parallel=True)
def _observe_over_cores(
    c: Compiled, w: GroupIndex, rows: Ints, states: Buffers, found: Outcomes, kept: Kept, told: Any
) -> None:  # pragma: no cover
    for index in prange(len(rows)):
        observe_devices(c, w, rows[index : index + 1], states, found, kept, told)


@njit(cache=True)
def observe_devices(
    c: Compiled, w: GroupIndex, rows: Ints, states: Buffers, found: Outcomes, kept: Kept, told: Any
) -> None:  # pragma: no cover
    """Writes the device features of some rows, one after the other; see `Schedules.write`."""
    current, visited, taken, written = told
    ints, longs, reals = states
    num_groups = len(w.fastest)
    pairs = np.empty((written.shape[1], PAIR_FEATURES), np.float32)
    groups = np.empty(GROUP_FEATURES, np.float32)
    for row in rows:
        s = view(c, ints[row], longs[row], reals[row])
        seconds = max(found.step_time[row], TINY)
        if not kept.surveyed[row]:
            busy_profile(c, w, s, seconds, kept.busy[row], kept.load[row])
            kept.surveyed[row] = True
        observe(
            c, w, s, seconds, found.peak_memory[row], kept.busy[row], kept.load[row],
            current[row], visited[row, :num_groups], taken[row] >= num_groups, pairs, groups,
        )  # fmt: skip
        for device in range(written.shape[1]):
            for feature in range(PAIR_FEATURES):
                written[row, device, feature] = pairs[device, feature]
            for feature in range(GROUP_FEATURES):
                written[row, device, PAIR_FEATURES + feature] = groups[feature]
