"""A free port, and keeping a TensorFlow server that listens on it off the network.

`tf.distribute.Server` listens on every interface, whatever address its cluster has, and has no
option against it. Its listening socket is therefore bound to the loopback interface at once when
the server has started; from then on the kernel refuses connections that come in by any other.
"""

import os
import socket

import psutil

from placeto.support.errors import PlacetoError


def free_port() -> int:
    """A TCP port that nobody listens on, for the moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def keep_to_loopback(port: int) -> None:
    """Binds this process' listening sockets of a port to the loopback interface.

    Raises:
        PlacetoError: there is none, or the kernel does not let it be bound (Linux before 5.7 wants
            root for it).
    """
    found = 0
    for each in psutil.Process().net_connections("tcp"):
        if each.status != psutil.CONN_LISTEN or each.laddr.port != port:
            continue
        found += 1
        with socket.socket(fileno=os.dup(each.fd)) as listening:
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
            except OSError as error:
                raise PlacetoError(
                    f"port {port} cannot be kept to the loopback interface: {error.strerror}"
                ) from error
    if not found:
        raise PlacetoError(f"port {port}: no socket of this process listens there")
