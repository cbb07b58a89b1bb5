"""What a first environment has compiled by another process, where nothing is compiled yet."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeto.envs import generator
from placeto.envs.features.devices import DEVICE_FEATURES, ScheduledBatch
from placeto.envs.progress import no_progress
from placeto.grouping import group_ops
from placeto.support.beside import done


def compile_all() -> None:
    """Compiles groups and device features, without the kernel, which the other process compiles."""
    problem = generator.diamond()
    group_ops(problem.graph, 2)
    done("groups")
    batch = ScheduledBatch(problem, 1, kernel=False)
    observations: dict[str, NDArray[Any]] = {
        "current_node": np.zeros(1, dtype=np.int64),
        "action_mask": np.zeros((1, problem.num_devices), dtype=np.int8),
        "node_mask": np.zeros((1, problem.num_groups), dtype=np.int8),
    }
    written = np.zeros((1, problem.num_devices, DEVICE_FEATURES), dtype=np.float32)
    batch.write(np.zeros(0, dtype=np.int64), no_progress(observations, 1), written)
    done("features")
