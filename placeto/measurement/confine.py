"""Keeping a process to the cores and the memory that the cluster file gives it."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeto.placement.placed_graph import ORDERED, check_order
from placeto.support.errors import PlacetoError

_UNITS = 1024


@dataclass(frozen=True)
class RuntimeSettings:
    """How placements are run; by default so that a step runs as it was simulated.

    What each setting is worth is in docs/results/measured.md.

    Attributes:
        order: of each device's ops: `fifo`, the simulated one, or `none`, the runtime's own.
        keeps_memory: whether processes of CPUs keep freed memory for the next allocation.
        serving_threads: inter-op threads of a process beyond its cores. A tensor is asked for, and
            sent, in such a thread: with none to spare it waits until an op has ended.

    Raises:
        PlacetoError: an unknown order, or a negative number of threads.
    """

    order: str = ORDERED
    keeps_memory: bool = True
    serving_threads: int = 3

    def __post_init__(self) -> None:
        check_order(self.order)
        if self.serving_threads < 0:
            raise PlacetoError(
                f"serving_threads is {self.serving_threads}, expected a number from 0"
            )

    def environment(self, *, on_cpus: bool) -> dict[str, str]:
        """What a process needs in its environment before it starts.

        TensorFlow's wheel brings no malloc of its own: a CPU's tensors are glibc's (2.21:
        libtensorflow_framework.so.2 wants `posix_memalign@GLIBC_2.2.5`). By default glibc has an
        arena a thread, maps large blocks and unmaps them when they are freed, and gives the end of
        its heap back: a step faults the same pages in again and again.

        Args:
            on_cpus: whether all devices of the process are CPUs; the memory of others is not
                malloc's.
        """
        if not (self.keeps_memory and on_cpus):
            return {}
        return {
            "MALLOC_ARENA_MAX": "1",
            # No block is mapped. The highest MALLOC_MMAP_THRESHOLD_ that glibc takes, 32 MiB,
            # leaves out larger tensors: an RNNLM's step with weights of 33 MB then faults 243,000
            # pages and takes 3.0 s; where no block is mapped, 4,000 pages and 2.3 s.
            "MALLOC_MMAP_MAX_": "0",
            "MALLOC_TRIM_THRESHOLD_": str(16 * 2**30),
        }


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
