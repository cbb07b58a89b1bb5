"""Keeping a process to the cores and the memory that the cluster file gives it."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeto.simulation import ORDERED, check_order

_UNITS = 1024
_KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
}


@dataclass(frozen=True)
class RuntimeSettings:
    """How a runtime runs placements.

    Attributes:
        order: of each device's ops: `fifo`, the simulated one, or `none`, the runtime's own.
        keeps_memory: whether freed memory is kept for the next allocation.
        serving_threads: threads beyond the cores.
    """

    order: str = ORDERED
    keeps_memory: bool = True
    serving_threads: int = 3

    def __post_init__(self) -> None:
        check_order(self.order)

    @property
    def environment(self) -> dict[str, str]:
        """Variables to set before the process starts."""
        return dict(_KEEP_MEMORY) if self.keeps_memory else {}


def pin(cores: list[int] | None) -> None:
    """Pins the process to cores; before TensorFlow is imported, whose threads inherit it."""
    if cores is not None:
        os.sched_setaffinity(0, cores)


def limit_memory(num_bytes: int | None) -> None:
    """Lets the process have that many bytes beyond what it has.

    An allocation beyond that fails, as it would on a device of that size. The limit is on private
    writable memory (RLIMIT_DATA), not on what is mapped without being used.
    """
    if num_bytes is None:
        return
    lines = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * _UNITS
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + num_bytes
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def process_config(num_cores: int, num_cpu_devices: int, serving_threads: int) -> Any:
    """A ConfigProto with as many threads as cores, and more that serve tensors meanwhile."""
    from tensorflow.core.protobuf.config_pb2 import ConfigProto

    return ConfigProto(
        intra_op_parallelism_threads=num_cores,
        inter_op_parallelism_threads=num_cores + serving_threads,
        device_count={"CPU": num_cpu_devices},
    )
