"""The processes that a cluster's devices need on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from placeto.cluster import Cluster


@dataclass(frozen=True)
class Task:
    """One process that runs devices.

    Attributes:
        job: of TensorFlow's cluster.
        number: of the task in its job.
        cores: those that the process is pinned to; None if it is not.
        num_cores: threads that it is given.
        num_cpu_devices: CPU devices in it.
        memory_bytes: of its devices together; None where some are not CPUs, whose own memory
            limits them.
    """

    job: str
    number: int
    cores: tuple[int, ...] | None
    num_cores: int
    num_cpu_devices: int
    memory_bytes: int | None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.job} {self.number}"

    def settings(self) -> dict[str, Any]:
        """What its process has to know of it."""
        return {
            "cores": None if self.cores is None else list(self.cores),
            "num_cores": self.num_cores,
            "num_cpu_devices": self.num_cpu_devices,
            "memory_bytes": self.memory_bytes,
        }


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
        cores = _take(free, [device.cores for _, device in members])
        tasks.append(
            Task(
                job,
                number,
                cores,
                len(cores or available),
                max(cpus, default=0) + 1,
                sum(device.memory_bytes for _, device in members)
                if len(cpus) == len(members)
                else None,
            )
        )
    return tuple(sorted(tasks, key=lambda task: (task.job, task.number)))


def _take(free: Iterator[int], counts: Sequence[int | None]) -> tuple[int, ...] | None:
    if None in counts:
        return None
    return tuple(next(free) for count in counts for _ in range(count or 0))
