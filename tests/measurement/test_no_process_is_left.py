"""However the parent ends, its processes end with it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import sys
import numpy as np
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.measurement import Effort, Runtime, find_runnable

path, preset = sys.argv[1:]
graph = load_graph(path)
cluster = load_cluster(preset)
problem = PlacementProblem(graph, cluster, "colocation")
devices = np.zeros(problem.num_groups, dtype=int)
runnable = find_runnable(graph, path.rpartition("/")[0])
with Runtime(cluster) as runtime:
    print(runtime.measure(problem, devices, runnable, Effort(0, 1)).reason, flush=True)
    print(*runtime.process_ids.values(), flush=True)
    runtime.measure(problem, devices, runnable, Effort(0, 10**9))
"""


def running(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
        return state not in "ZX"
    return False


@pytest.mark.parametrize(
    ("how", "preset", "count"),
    [(signal.SIGKILL, "local-2", 3), (signal.SIGINT, "local-cpu", 1)],
)
def test_children_end_with_their_parent(saved, tmp_path, how, preset, count):
    if preset == "local-2" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    path = saved("two_layers").path
    home = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path), preset],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(home)},
    ) as parent:
        try:
            assert parent.stdout.readline().strip() == ""
            children = [int(process) for process in parent.stdout.readline().split()]
            assert len(children) == count
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
