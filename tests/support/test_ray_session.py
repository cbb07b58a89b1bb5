"""Ray is there while it is needed, and not after that."""

import http.server
import subprocess
import sys
import threading
import time

import pytest

from benchmarks.processes import alive, descendants
from placeto import PlacetoError
from placeto.support import ray_session as session


@pytest.fixture
def _impatient(monkeypatch):
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.5)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", r"no Ray cluster can be reached \(nothing at .*\); start one by"),
        ("127.0.0.1:70000", "no Ray cluster can be reached"),
        ("10.0.0.1", "expected auto, or HOST:PORT of a cluster"),
        ("ray://10.0.0.1:head", "expected auto, or HOST:PORT of a cluster"),
    ],
)
@pytest.mark.usefixtures("_impatient")
def test_a_wrong_address_is_one_line_at_once(address, says):
    with pytest.raises(PlacetoError, match=f"--ray-address {address}: {says}"):
        session._start(session.import_ray(), address, 1)


@pytest.mark.usefixtures("_impatient")
def test_what_listens_and_is_no_ray_is_one_line_at_once():
    """As that of a cluster's dashboard is, whose address is easily taken for the cluster's."""
    handler = http.server.BaseHTTPRequestHandler
    with http.server.ThreadingHTTPServer(("", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(PlacetoError, match=r"nothing at .* answers as Ray does"):
                session._start(session.import_ray(), f"127.0.0.1:{server.server_port}", 1)
        finally:
            server.shutdown()
            thread.join()


def test_a_ray_answers(ray):
    session._check_answers(ray.get_runtime_context().gcs_address)


ENDS = """
import threading
from placeto.support.ray_session import ray_session
with ray_session(None, 1):
    print("what this thread says is output")
    thread = threading.Thread(target=print, args=("what Ray's threads say is none",))
    thread.start()
    thread.join()
    raise {how}
"""


def test_an_error_leaves_nothing_running():
    program = ENDS.format(how="KeyboardInterrupt")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        started = {}
        while process.poll() is None:
            started |= descendants(process.pid)
            time.sleep(0.05)
        assert process.stdout is not None
        assert process.stdout.read() == "what this thread says is output\n"
    assert any("raylet" in line for line in started.values())
    assert not [each for each in started if alive(each)]
