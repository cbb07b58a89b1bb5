"""However the parent ends, its processes end with it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placeto import save_cluster

PARENT = """
import signal, sys
from dataclasses import replace
import numpy as np
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.measurement import Effort, Runtime, find_runnable, runtime

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
path, puppets = sys.argv[1:]
graph, cluster = load_graph(path), load_cluster("pair.yaml")
problem = PlacementProblem(graph, cluster, "papers")
devices = np.zeros(problem.num_groups, dtype=int)
first = last = find_runnable(graph)
if puppets:
    runtime._DRIVER_MODULE = runtime._WORKER_MODULE = puppets
    first, last = replace(first, path="ran"), replace(last, path="hangs")
with Runtime(cluster) as processes:
    print(processes.measure(problem, devices, first, Effort(0, 1)).reason, flush=True)
    print(*processes.process_ids.values(), flush=True)
    processes.measure(problem, devices, last, Effort(0, 10**9))
"""


def running(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
        return state not in "ZX"
    return False


@pytest.mark.parametrize(
    ("how", "puppets"), [(signal.SIGKILL, ""), (signal.SIGINT, "tests.measurement.puppet")]
)
def test_children_end_with_their_parent(pair, saved, tmp_path, how, puppets):
    save_cluster(pair, tmp_path / "pair.yaml")
    home = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(saved("two_layers").path), puppets],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(home)},
    ) as parent:
        try:
            assert parent.stdout.readline().strip() == ""
            children = [int(process) for process in parent.stdout.readline().split()]
            assert len(children) == 3
            assert all(map(running, children))
            # It is in the midst of the endless measurement, or about to begin it.
            parent.send_signal(how)
            parent.wait(10)
        finally:
            parent.kill()
        until = time.monotonic() + 10
        while any(map(running, children)) and time.monotonic() < until:
            time.sleep(0.05)
        left = [process for process in children if running(process)]
        for process in left:
            os.kill(process, signal.SIGKILL)
        assert left == []
