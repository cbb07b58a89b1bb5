"""A Ray of this process's own, or a cluster's, for as long as it is needed."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from types import ModuleType

from placeto.errors import PlacetoError

# What is stored is small, and a machine's default would be 30% of its memory.
OBJECT_STORE_BYTES = 256 * 2**20

PATIENCE_SECONDS = 10.0

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray would have its workers give way to everything else; nothing is done without them.
    "RAY_worker_niceness": "0",
    # The crews say what became of their workers.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed",
}


@contextlib.contextmanager
def ray_session(address: str | None, cpus: int) -> Iterator[None]:
    """Starts Ray on this machine, or goes to a cluster; leaves nothing running, however it ends.

    Where this process uses Ray already, that one is used, and left as it is. What Ray prints goes
    to stderr.

    Args:
        address: of a cluster, or `auto` for the one that this machine is part of; None for a Ray
            of this process's own.
        cpus: how many workers are wanted at once, a CPU each as Ray counts them. A Ray of this
            process's own has so many, whatever the machine has.

    Raises:
        PlacetoError: Ray is not installed, the cluster cannot be reached or has fewer CPUs.
    """
    ray = import_ray()
    with contextlib.redirect_stdout(sys.stderr):
        if ray.is_initialized():
            _check_size(ray, "this process's Ray", cpus)
            yield
            return
        try:
            _start(ray, address, cpus)
            if address is not None:
                _check_size(ray, f"--ray-address {address}: the cluster", cpus)
            yield
        finally:
            ray.shutdown()


def import_ray() -> ModuleType:
    """The package.

    Raises:
        PlacetoError: it is not installed.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise PlacetoError(f"workers need Ray ({error}); pip install 'placeto[ray]'") from error
    return ray


def _start(ray: ModuleType, address: str | None, cpus: int) -> None:
    if address not in (None, "auto"):
        _check_listens(str(address))
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        ray.init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            **quiet,
        )
        return
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, AssertionError) as error:
        line = " ".join(str(error).split()).partition(". ")[0]
        raise PlacetoError(
            f"--ray-address {address}: no Ray cluster can be reached ({line}); start one by: "
            "ray start --head"
        ) from error


def _check_listens(address: str) -> None:
    """Ray would try for minutes, and then end this process."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit()):
        raise PlacetoError(f"--ray-address {address}: expected auto, or HOST:PORT of a cluster")
    try:
        socket.create_connection((host, int(port)), PATIENCE_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise PlacetoError(
            f"--ray-address {address}: no Ray cluster can be reached ({error}); start one by: "
            "ray start --head"
        ) from error


def _check_size(ray: ModuleType, what: str, cpus: int) -> None:
    """Workers that a cluster has no room for would be waited for in vain."""
    there = ray.cluster_resources().get("CPU", 0.0)
    if there < cpus:
        raise PlacetoError(f"{what} has {there:g} CPUs, but {cpus} are wanted: one a worker")
