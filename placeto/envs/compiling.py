"""What a first environment has compiled by another process, where nothing is compiled yet."""

import numpy as np

from placeto.envs import generator
from placeto.envs.features.devices import ScheduledBatch
from placeto.envs.observation import empty_observations, observation_space
from placeto.envs.progress import no_progress
from placeto.grouping import group_ops
from placeto.simulation import simulate_many
from placeto.support.beside import done


def compile_all() -> None:
    """Compiles groups and device features, without the kernel, which the other process compiles."""
    problem = generator.diamond()
    group_ops(problem.graph, 2)
    done("groups")
    seen = empty_observations(1, observation_space([problem], None, None))
    batch = ScheduledBatch(problem, 1, simulate_many, kernel=False)
    batch.write(np.zeros(0, dtype=np.int64), no_progress(seen, 1), seen["device_features"])
    done("features")
