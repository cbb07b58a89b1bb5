"""Seconds from the start of a process to its first step time."""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

from benchmarks.speed.timing import in_turn, times

PROBLEM = """
import placeto
problem = placeto.PlacementProblem(
    placeto.load_graph("inception_v3"), placeto.load_cluster("k80x4"), grouping="auto"
)
devices = [0] * problem.num_groups
"""
ENVIRONMENT = """
import gymnasium, placeto
env = gymnasium.make("DevicePlacement-v0")
env.reset(seed=0)
print(env.step(1)[4]["step_time"], flush=True)
"""
PROGRAMS = {
    "simulate": PROBLEM + "print(placeto.simulate(problem, devices).step_time, flush=True)",
    "step_times": PROBLEM + "print(placeto.step_times(problem, [devices])[0], flush=True)",
    "environment": ENVIRONMENT,
    "imports of others": "import numpy, numba, gymnasium; print(0, flush=True)",
}
WITHOUT_TORCH = "\nimport sys; sys.exit('torch' in sys.modules)"


def first_call_speed() -> dict[str, Any]:
    """Seconds to the first step time with a warm cache of compiled code, and with none.

    `imports of others` is what importing NumPy, numba and Gymnasium alone takes.
    """
    takes = {name: partial(seconds_to_first_line, code) for name, code in PROGRAMS.items()}
    in_turn(takes, 1)  # fills the cache
    found = in_turn(takes, 5)
    with tempfile.TemporaryDirectory() as folder:
        empty = seconds_to_first_line(PROGRAMS["step_times"], NUMBA_CACHE_DIR=folder)
    return {**found, "empty cache": times([empty])}


def seconds_to_first_line(code: str, **environment: str) -> float:
    """How long a new Python process takes until it has printed a line.

    Raises:
        RuntimeError: it failed, or imported torch.
    """
    command = [sys.executable, "-c", code + WITHOUT_TORCH]
    environment = {**os.environ, **environment}
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"a program failed or imported torch: {code}")
    return took
