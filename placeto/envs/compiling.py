"""What a first environment has compiled by another process, where nothing is compiled yet."""

import numpy as np

from placeto.envs import generator
from placeto.envs.features.devices import DEVICE_FEATURES, Schedules
from placeto.grouping import group_ops
from placeto.simulation import Outcomes
from placeto.support.beside import done


def compile_all() -> None:
    """Compiles groups and device features, without the kernel, which the other process compiles."""
    problem = generator.diamond()
    group_ops(problem.graph, 2)
    done("groups")
    schedules = Schedules(problem, 1, simulates=False)
    nothing = np.zeros(0, dtype=np.int64)
    ints = np.zeros((1, problem.num_devices), dtype=np.int64)
    groups = np.zeros((1, problem.num_groups))
    schedules.write(
        nothing,
        Outcomes(np.zeros(1), ints, groups, np.zeros(1, dtype=bool)),
        ints[:, 0].copy(),
        groups.astype(bool),
        ints[:, 0].copy(),
        np.zeros((1, problem.num_devices, DEVICE_FEATURES), dtype=np.float32),
    )
    done("features")
