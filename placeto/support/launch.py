"""How a cluster's devices are run: in one process, by workers started here, or elsewhere."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placeto.support.errors import PlacetoError

_DEVICE = re.compile(
    r"(?:/job:(?P<job>[A-Za-z][\w-]*))?(?:/replica:0)?(?:/task:(?P<task>\d{1,6}))?"
    r"/device:(?P<type>[A-Z][A-Z_]*):(?P<index>\d{1,6})"
)
_ADDRESS = re.compile(r"[^\s:/]+:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5}")
_EXAMPLE = "/job:worker/task:0/device:CPU:0"
_LAUNCH = 'local, or a job\'s addresses such as {worker: ["host:port", …]}'


@dataclass(frozen=True)
class Launch:
    """Worker processes, one a task, that run a cluster's devices."""

    # (job, its tasks' `host:port`) of workers that run already; empty for those started here.
    addresses: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether the workers are started on this machine."""
        return not self.addresses


@dataclass(frozen=True)
class TensorFlowDevice:
    """TensorFlow's name of a device, in parts."""

    job: str  # of the cluster; `localhost` where there is but one process
    task: int  # number of the process in its job
    type: str  # such as `CPU`
    index: int  # number of the device in its process

    def __str__(self) -> str:
        return f"/job:{self.job}/replica:0/task:{self.task}/device:{self.type}:{self.index}"


def tensorflow_devices(
    launch: Launch | None, names: Sequence[str], tensorflow: Sequence[str | None]
) -> tuple[TensorFlowDevice, ...]:
    """What TensorFlow calls the devices of a cluster, in full; with no launch, of one process.

    `names` and `tensorflow`, (num_devices,) both, are what the cluster file says of each.

    Raises:
        PlacetoError: a device without such a name or with another's, a process that the launch
            does not have, or tasks that are not numbered from 0 without gaps.
    """
    said = zip(names, tensorflow, strict=True)
    devices = tuple(_device(launch, text, f"device {name!r}") for name, text in said)
    for number, device in enumerate(devices):
        if device in devices[:number]:
            raise PlacetoError(
                f"device {names[number]!r}: tensorflow is {tensorflow[number]!r}, as is that of "
                f"{names[devices.index(device)]!r}; each needs its own"
            )
    if launch is not None and launch.is_local:
        for device in devices:
            tasks = {other.task for other in devices if other.job == device.job}
            if missing := set(range(max(tasks))) - tasks:
                raise PlacetoError(
                    f"launch: no device is of task {min(missing)} of job {device.job!r}; number "
                    "the tasks from 0 without gaps"
                )
    return devices


def read_launch(value: Mapping[str, Sequence[str]] | str | None, where: str) -> Launch | None:
    """The launch that a cluster file asks for: `local`, the addresses of each job, or None.

    Raises:
        PlacetoError: no job, what is no name of a job, or an address that is not `host:port`.
    """
    if value is None:
        return None
    if value == "local":
        return Launch()
    if isinstance(value, str) or not value:
        raise PlacetoError(f"{where} is {value!r}, expected {_LAUNCH}")
    for job, addresses in value.items():
        if not re.fullmatch(r"[A-Za-z][\w-]*", job):
            raise PlacetoError(f"{where}: job {job!r} is not a name such as worker")
        if not addresses:
            raise PlacetoError(f"{where}: {job} is [], expected a list of host:port")
        for address in addresses:
            right = _ADDRESS.fullmatch(address)
            if not right or not 0 < int(address.rpartition(":")[2]) < 2**16:
                raise PlacetoError(f"{where}: {job}: address {address!r} is not host:port")
    return Launch(tuple((job, tuple(addresses)) for job, addresses in value.items()))


def launch_document(launch: Launch) -> Any:
    """The launch as a cluster file has it."""
    if launch.is_local:
        return "local"
    return {job: list(addresses) for job, addresses in launch.addresses}


def _device(launch: Launch | None, text: str | None, where: str) -> TensorFlowDevice:
    if text is None:
        raise PlacetoError(
            f"{where}: tensorflow is missing, so it cannot be run; give TensorFlow's name of it"
        )
    said = f"{where}: tensorflow is {text!r}"
    match = _DEVICE.fullmatch(text)
    if match is None:
        example = "/device:CPU:0" if launch is None else _EXAMPLE
        raise PlacetoError(f"{said}, expected a name such as {example}")
    job, task = match["job"], match["task"]
    if launch is None:
        if (job or "localhost") != "localhost" or int(task or 0) != 0:
            raise PlacetoError(
                f"{said}, of another process, but the cluster has no launch; give {_LAUNCH}"
            )
        job, task = "localhost", "0"
    elif job is None or task is None:
        raise PlacetoError(f"{said}, which names no job and task; give a name such as {_EXAMPLE}")
    elif not launch.is_local:
        tasks = dict(launch.addresses).get(job, ())
        if int(task) >= len(tasks):
            raise PlacetoError(f"{said}, but launch has {len(tasks)} addresses of job {job!r}")
    return TensorFlowDevice(job, int(task), match["type"], int(match["index"]))
