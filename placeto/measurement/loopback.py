"""A free port, and keeping a TensorFlow server that listens on it off the network.

`tf.distribute.Server` listens on every interface, whatever address its cluster has, and has no
option against it. Its listening socket is therefore bound to the loopback interface at once when
the server has started; from then on the kernel refuses connections that come in by any other.
"""

import os
import socket
from pathlib import Path

from placeto.support.errors import PlacetoError

_LISTENS = "0A"


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
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue
        if target not in inodes:
            continue
        found += 1
        with socket.socket(fileno=os.dup(int(entry.name))) as listening:
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
            except OSError as error:
                raise PlacetoError(
                    f"port {port} cannot be kept to the loopback interface: {error.strerror}"
                ) from error
    if not found:
        raise PlacetoError(f"port {port}: no socket of this process listens there")
