"""A Ray of this process's own, or a cluster's, for as long as it is needed."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from placeto.support.errors import PlacetoError

OBJECT_STORE_BYTES = 256 * 2**20  # what is stored is small; the default is 30% of all memory
PATIENCE_SECONDS = 5.0

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray would have its workers give way to everything else; nothing is done without them.
    "RAY_worker_niceness": "0",
    # The crews say what became of their workers.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|so the task will be retried",
}


@contextlib.contextmanager
def ray_session(address: str | None, cpus: int) -> Iterator[None]:
    """Starts Ray on this machine, or goes to a cluster; leaves nothing running, however it ends.

    Where this process uses Ray already, that one is used, and left as it is. What Ray prints, which
    it does in threads of its own, goes to stderr.

    Args:
        address: of a cluster, or `auto` for this machine's; None for a Ray of this process's own.
        cpus: how many workers are wanted at once, a CPU each as Ray counts them. A Ray of this
            process's own has so many, whatever the machine has.

    Raises:
        PlacetoError: Ray is not installed or cannot be started, the cluster cannot be reached or
            has fewer CPUs.
    """
    ray = import_ray()
    aside: Any = _Aside()
    with contextlib.redirect_stdout(aside):
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
    """The package; a `PlacetoError` where it is not installed."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise PlacetoError(f"workers need Ray ({error}); pip install 'placeto[ray]'") from error
    return ray


def _start(ray: ModuleType, address: str | None, cpus: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    failures = (OSError, ValueError, RuntimeError, ray.exceptions.RayError)
    if address is None:
        own = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        try:
            ray.init(address="local", num_cpus=cpus, **own, **quiet)
        except failures as error:
            raise PlacetoError(
                f"workers need Ray, which cannot be started on this machine ({_line(error)})"
            ) from error
        return
    host, colon, port = address.rpartition(":")
    if address != "auto" and not (colon and host and port.isascii() and port.isdigit()):
        raise PlacetoError(f"--ray-address {address}: expected auto, or HOST:PORT of a cluster")
    try:
        _check_answers(address)
        ray.init(address=address, **quiet)
    except ConnectionError as error:
        raise PlacetoError(
            f"--ray-address {address}: no Ray cluster can be reached ({_line(error)}); start one "
            "by: ray start --head"
        ) from error
    except (*failures, AssertionError) as error:
        raise PlacetoError(
            f"--ray-address {address}: the Ray there cannot be used ({_line(error)}); one that has "
            "a token wants RAY_AUTH_MODE=token, and the token"
        ) from error


def _check_answers(address: str) -> None:
    """A `ConnectionError` where no Ray is, which would try for minutes, and end this process."""
    import grpc  # type: ignore[import-untyped]

    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", address)
    if address == "auto" or os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return
    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE_SECONDS)
        except grpc.FutureTimeoutError:
            raise ConnectionError(
                f"nothing at {address} answers as Ray does, whose port is 6379 by default"
            ) from None


def _line(error: Exception) -> str:
    """The first sentence of an error."""
    return " ".join(str(error).split()).partition(". ")[0]


class _Aside:
    """Standard output for the thread that made it, standard error for all others."""

    def __init__(self) -> None:
        self._stdout, self._owner = sys.stdout, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        own = threading.get_ident() == self._owner
        return getattr(self._stdout if own else sys.stderr, name)


def _check_size(ray: ModuleType, what: str, cpus: int) -> None:
    """Workers that a cluster has no room for would be waited for in vain."""
    there = ray.cluster_resources().get("CPU", 0.0)
    if there < cpus:
        raise PlacetoError(f"{what} has {there:g} CPUs, but {cpus} are wanted: one a worker")
