"""A worker: one task of a TensorFlow cluster on this machine, started by `Runtime`."""

import os
import socket
import sys
from typing import Any

import psutil

from placeto.measurement.parent import Parent
from placeto.measurement.tasks import import_core, limit_memory, pin, process_config
from placeto.support.errors import PlacetoError


def main() -> None:
    """Serves until the parent ends."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    pin(settings["cores"])
    import_core()
    import tensorflow.python.training.server_lib  # noqa: F401  # so that no port is free for long

    parent.send({"port": free_port()})
    try:
        server = serve(settings, parent.receive()["cluster"])
    except PlacetoError as error:
        parent.send({"error": str(error)})
    else:
        limit_memory(settings["memory_bytes"])
        parent.send({"target": server.target})
    parent.receive()


def serve(settings: dict[str, Any], cluster: dict[str, list[str]]) -> Any:
    """A TensorFlow server that can be reached from this machine only.

    Args:
        settings: of the task, see `process_config`.
        cluster: addresses of all tasks, by job.

    Raises:
        PlacetoError: the port cannot be had, or not be kept to the loopback interface.
    """
    from tensorflow.python.framework.errors import OpError
    from tensorflow.python.training.server_lib import Server

    job, task = settings["job"], settings["number"]
    port = int(cluster[job][task].rpartition(":")[2])
    config = process_config(settings)
    try:
        server = Server(cluster, job_name=job, task_index=task, config=config)
    except OpError as error:
        reason = error.message.splitlines()[0]
        raise PlacetoError(f"cannot serve on port {port}: {reason}; is it in use?") from error
    keep_to_loopback(port)
    return server


def free_port() -> int:
    """A TCP port that nobody listens on, for the moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def keep_to_loopback(port: int) -> None:
    """Binds this process' listening sockets of a port to the loopback interface.

    A TensorFlow server listens on every interface, whatever address its cluster has, and has no
    option against it. From here on the kernel refuses connections that come in by any other.

    Raises:
        PlacetoError: there is none, or the kernel does not let it be bound (Linux before 5.7 wants
            root for it).
    """
    listening = [
        each.fd
        for each in psutil.Process().net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr.port == port
    ]
    if not listening:
        raise PlacetoError(f"port {port}: no socket of this process listens there")
    for descriptor in listening:
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            try:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
            except OSError as error:
                raise PlacetoError(
                    f"port {port} cannot be kept to the loopback interface: {error.strerror}"
                ) from error


if __name__ == "__main__":
    main()
