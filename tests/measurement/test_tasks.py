import os
import subprocess
import sys

import pytest

from placeto import Channel, Cluster, Device
from placeto.measurement.tasks import has_plugins, tasks_of
from placeto.support.launch import Launch

LOCAL = Launch()


def cluster(*devices: Device, launch: Launch | None = LOCAL) -> Cluster:
    names = tuple(device.name for device in devices)
    channels = (Channel("all", names, names, 1.0),)
    return Cluster("c", devices, channels, launch=launch)


def cpu(task: int, index: int = 0, cores: int | None = None, kind: str = "CPU") -> Device:
    name = f"/job:worker/task:{task}/device:{kind}:{index}"
    return Device(f"{kind}{task}{index}", "k", 100 + task, tensorflow=name, cores=cores)


@pytest.fixture(autouse=True)
def _six_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {7, 2, 3, 4, 5, 6})


def test_cores_are_dealt_out_once():
    tasks = tasks_of(cluster(cpu(1, cores=1), cpu(0, 0, 2), cpu(0, 1, 2)))
    assert [(task.name, task.cores, task.num_cores) for task in tasks] == [
        ("worker 0", (3, 4, 5, 6), 4),
        ("worker 1", (2,), 1),
    ]
    assert [task.num_cpu_devices for task in tasks] == [2, 1]
    assert [task.memory_bytes for task in tasks] == [200, 101]


def test_the_memory_of_other_devices_is_not_limited_here():
    (task,) = tasks_of(cluster(cpu(0), cpu(0, kind="GPU")))
    assert task.memory_bytes is None
    assert task.num_cpu_devices == 1


def test_one_process_without_a_launch():
    device = Device("d", "k", 5, tensorflow="/device:CPU:2", cores=2)
    (task,) = tasks_of(cluster(device, launch=None))
    assert (task.job, task.cores, task.num_cpu_devices) == ("localhost", (2, 3), 3)


def test_a_process_of_a_runtime_reads_in_no_more_than_it_needs(tmp_path):
    code = """import sys; from placeto.measurement import driver, tasks; tasks.import_core()
from tensorflow.python.client.session import Session
print(*({"numba", "keras.models", "tensorflow._api", "tensorflow.python"} & {*sys.modules}))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "tensorflow.python\n"
    # But for devices that only the whole package looks for.
    assert not has_plugins(tmp_path)
    (tmp_path / "tensorflow-plugins").mkdir()
    assert has_plugins(tmp_path)
