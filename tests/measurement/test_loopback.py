import socket

import pytest

from placeto.measurement.worker import free_port, keep_to_loopback


def bound_to(each: socket.socket) -> bytes:
    return each.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0")


@pytest.mark.parametrize(
    ("family", "everywhere"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]
)
def test_a_socket_that_listens_everywhere_is_bound_to_the_loopback(family, everywhere):
    port = free_port()
    with socket.socket(family) as server, socket.socket(family) as other:
        server.bind((everywhere, port))
        server.listen()
        other.bind((everywhere, 0))
        other.listen()
        keep_to_loopback(port)
        assert (bound_to(server), bound_to(other)) == (b"lo", b"")
        local = "127.0.0.1" if family == socket.AF_INET else "::1"
        with socket.create_connection((local, port), 5):
            pass
