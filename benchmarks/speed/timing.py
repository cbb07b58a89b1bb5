"""Wall-clock times, each taken more than once; and those of new processes."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

Times = dict[str, float]
PROBLEM = """
import placeto
graph, cluster = placeto.load_graph("inception_v3"), placeto.load_cluster("k80x4")
problem = placeto.PlacementProblem(graph, cluster, grouping="auto")
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


def times(passes: ArrayLike) -> Times:
    """Of (passes,) or (passes, n) seconds of n things, the fastest and the median pass.

    Of several things these are means over the things.
    """
    table = np.asarray(passes, dtype=np.float64)
    table = table.reshape(len(table), -1)
    fastest, median = table.min(axis=0).mean(), np.median(table, axis=0).mean()
    return {"fastest": float(fastest), "median": float(median), "passes": len(table)}


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def in_turn(takes: Mapping[str, Callable[[], ArrayLike]], rounds: int) -> dict[str, Times]:
    """Times of what takes turns, so that what disturbs the machine disturbs all of it.

    Each of `takes` does its thing once and returns seconds, as a row of `times`.
    """
    turns = [{name: take() for name, take in takes.items()} for _ in range(rounds)]
    return {name: times([turn[name] for turn in turns]) for name in takes}


def first_call_speed() -> dict[str, Times]:
    """Seconds to the first step time with a warm cache of compiled code, and with none."""
    takes = {name: partial(seconds_to_first_line, code) for name, code in PROGRAMS.items()}
    in_turn(takes, 1)  # fills the cache
    found = in_turn(takes, 5)
    with tempfile.TemporaryDirectory() as folder:
        empty = seconds_to_first_line(PROGRAMS["step_times"], NUMBA_CACHE_DIR=folder)
    return {**found, "empty cache": times([empty])}


def seconds_to_first_line(code: str, **environment: str) -> float:
    """How long a new Python process takes to print a line; an error if it fails or has torch."""
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
