"""Ray is there while it is needed, and not after that."""

import subprocess
import sys
import time

import pytest

from benchmarks.processes import descendants
from placeto import PlacetoError
from placeto.distributed import ray_session


def test_without_ray_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(PlacetoError, match=r"workers need Ray \(.*\); pip install 'placeto\[ray\]"),
        ray_session(None, 1),
    ):
        pass


def test_no_cluster_is_one_line(monkeypatch):
    import ray

    def init(**settings):
        assert settings["address"] == "auto"
        raise ConnectionError("Could not find any running Ray instance. Please\nspecify one.")

    monkeypatch.setattr(ray, "init", init)
    with (
        pytest.raises(PlacetoError, match="--ray-address auto: no Ray cluster can be") as error,
        ray_session("auto", 1),
    ):
        pass
    assert str(error.value).endswith(
        "(Could not find any running Ray instance); start one by: ray start --head"
    )


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", r"no Ray cluster can be reached \(.*refused\); start one by"),
        ("127.0.0.1:70000", "no Ray cluster can be reached"),
        ("10.0.0.1", "expected auto, or HOST:PORT of a cluster"),
        ("ray://10.0.0.1:head", "expected auto, or HOST:PORT of a cluster"),
    ],
)
def test_a_wrong_address_is_one_line_at_once(address, says):
    with (
        pytest.raises(PlacetoError, match=f"--ray-address {address}: {says}"),
        ray_session(address, 1),
    ):
        pass


def test_a_session_in_a_session_uses_it_and_leaves_it(ray):
    with ray_session(None, 2):
        pass
    assert ray.is_initialized()
    with (
        pytest.raises(PlacetoError, match="process's Ray has 2 CPUs, but 3 are wanted: one a wo"),
        ray_session(None, 3),
    ):
        pass
    assert ray.is_initialized()


ENDS = """
import sys
from placeto.distributed import ray_session
with ray_session(None, 1):
    print("what Ray says is no output")
    raise {how}
"""


def test_an_error_leaves_nothing_running():
    program = ENDS.format(how="KeyboardInterrupt")
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        started = set()
        while process.poll() is None:
            started |= set(descendants(process.pid))
            time.sleep(0.05)
        assert process.stdout is not None
        assert process.stdout.read() == ""
    assert any("raylet" in each.title for each in started)
    assert not [each for each in started if each.alive()]
