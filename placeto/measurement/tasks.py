"""The processes that a cluster's devices need here, and keeping them to cores and memory."""

import importlib.util
import os
import resource
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from placeto.cluster import Cluster
from placeto.placement.placed_graph import ORDERED, check_order
from placeto.support.errors import PlacetoError


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
        its heap back: a step faults the same pages in again and again. The memory of devices that
        are not CPUs is not malloc's.
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


@dataclass(frozen=True)
class Task:
    """One process that runs devices: a task of TensorFlow's cluster, numbered in its job."""

    job: str
    number: int
    cores: tuple[int, ...] | None  # those that the process is pinned to; None if it is not
    num_cores: int  # threads that it is given
    num_cpu_devices: int
    # Of its devices together; None where some are not CPUs, whose own memory limits them.
    memory_bytes: int | None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.job} {self.number}"


def tasks_of(cluster: Cluster) -> tuple[Task, ...]:
    """The tasks of a cluster, by job and number, each with cores of its own.

    Raises:
        PlacetoError: there are fewer cores than the devices ask for; see
            `Cluster.tensorflow_devices`.
    """
    names = cluster.tensorflow_devices()
    available = sorted(os.sched_getaffinity(0))
    wanted = sum(device.cores or 0 for device in cluster.devices)
    if wanted > len(available):
        raise PlacetoError(
            f"cluster {cluster.name!r}: its devices ask for {wanted} cores, but this machine has "
            f"{len(available)} for them"
        )
    free = iter(available)
    tasks = []
    for job, number in dict.fromkeys((name.job, name.task) for name in names):
        members = [
            (name, device)
            for name, device in zip(names, cluster.devices, strict=True)
            if (name.job, name.task) == (job, number)
        ]
        cpus = [name.index for name, _ in members if name.type == "CPU"]
        counts = [device.cores for _, device in members]
        cores = None if None in counts else tuple(islice(free, sum(filter(None, counts))))
        memory = sum(device.memory_bytes for _, device in members)
        limit = memory if len(cpus) == len(members) else None
        num_cores, num_cpus = len(cores or available), max(cpus, default=0) + 1
        tasks.append(Task(job, number, cores, num_cores, num_cpus, limit))
    return tuple(sorted(tasks, key=lambda task: (task.job, task.number)))


def pin(cores: list[int] | None) -> None:
    """Pins this process to cores; before TensorFlow is imported, whose threads inherit it."""
    if cores is not None:
        os.sched_setaffinity(0, cores)


def limit_memory(num_bytes: int | None) -> None:
    """Lets this process have that many bytes beyond what it has.

    An allocation beyond that fails, as it would on a device of that size. The limit is on private
    writable memory (RLIMIT_DATA), not on what is mapped without being used.
    """
    if num_bytes is None:
        return
    lines = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + num_bytes
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def import_core() -> None:
    """Has a process import those of TensorFlow's modules that it names, and not the whole package.

    What serves a graph, or runs one, needs a fifth of them, which take a fifth of the seconds.
    Devices that come as plugins are found by the package alone: where there are any, it is
    imported, without Keras.
    """
    found = importlib.util.find_spec("tensorflow")
    if found is None or found.origin is None or has_plugins(Path(found.origin).parents[1]):
        sys.modules["keras"] = None  # type: ignore[assignment]  # TensorFlow goes on without it
        import tensorflow  # noqa: F401
    else:
        sys.modules["tensorflow"] = importlib.util.module_from_spec(found)


def has_plugins(packages: Path) -> bool:
    """Whether TensorFlow, in this folder of packages, would load devices beside its own."""
    told = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH")
    return bool(told) or (packages / "tensorflow-plugins").exists()


def process_config(settings: dict[str, Any]) -> Any:
    """A ConfigProto with as many threads as cores, and more that serve tensors meanwhile.

    The settings are those of a `Task`, and `serving_threads`.
    """
    from tensorflow.core.protobuf.config_pb2 import ConfigProto

    return ConfigProto(
        intra_op_parallelism_threads=settings["num_cores"],
        inter_op_parallelism_threads=settings["num_cores"] + settings["serving_threads"],
        device_count={"CPU": settings["num_cpu_devices"]},
    )
