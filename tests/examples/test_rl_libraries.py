"""The examples of docs/rl_libraries.md end at optima that enumeration proves."""

import itertools
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import placeto

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
STATED = re.compile(r"step time of (.+): ([0-9.]+) ms")
HEURISTICS = ("single", "expert", "metis", "etf", "heft")


def every_step_time(cluster, groups, **pins):
    """Milliseconds of all placements, all on the first device that is allowed before the others."""
    problem = placeto.PlacementProblem(
        placeto.load_graph("nmt"), placeto.load_cluster(cluster), groups, **pins
    )
    devices = [np.flatnonzero(allowed) for allowed in problem.allowed]
    return 1e3 * placeto.step_times(problem, np.array(list(itertools.product(*devices))))


@pytest.fixture(scope="module")
def two_gpus():
    return every_step_time("k80x2", 10)


# Reading libraries in is slow: examples of one share a process, and its TensorBoard no TensorFlow.
ALL = """
import runpy, sys
sys.modules["tensorflow"], paths, sys.argv[1:] = None, sys.argv[1:], []
for path, _, fewer in (path.partition(":") for path in paths):
    main = runpy.run_path(path, run_name="" if fewer else "__main__").get("main")
    if fewer:
        exec(f"main({fewer})")
"""


def run(*names):
    """What the examples say of agents, in milliseconds: a list of figures for each agent.

    Of one, by `name:episodes=10`, after fewer of something than it trains a reader's agent with.
    """
    # Threads that share two cores with other tests' wait for each other most of the time.
    quiet = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", ALL, *(EXAMPLES / name for name in names)],
        capture_output=True,
        text=True,
        env=os.environ | quiet,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = defaultdict(list)
    for agent, figure in STATED.findall(done.stdout):
        said[agent].append(float(figure))
    return dict(said)


def test_problem_is_not_solved_by_luck(two_gpus):
    assert len(two_gpus) == 1024
    assert two_gpus[0] == pytest.approx(481.6, abs=0.05)
    assert two_gpus.mean() == pytest.approx(383.6, abs=0.05)
    assert two_gpus.min() == pytest.approx(293.3, abs=0.05)
    assert (two_gpus < 1.04 * two_gpus.min()).mean() == 64 / 1024


def test_gymnasium_alone_single_file_rllib_and_torchrl(two_gpus):
    said = run(
        "gymnasium_alone.py", "single_file_ppo.py", "rllib_ppo.py", "torchrl_ppo.py:iterations=8"
    )
    # The mean of 64 draws, within three of its standard errors.
    assert said["a random agent"] == [pytest.approx(two_gpus.mean(), abs=3 * two_gpus.std() / 8)]
    assert min(said["the untrained agent"]) > 1.1 * two_gpus.min()
    # TorchRL's training ends at another of the best 6% where a processor rounds otherwise.
    reached = np.array(said["the trained agent"]) / two_gpus.min()
    assert (reached <= [1.0002, 1.0002, 1.0002, 1.04]).all()


def test_agents_of_stable_baselines(two_gpus):
    """The best placement, the best of those that are allowed, and a graph that was not seen."""
    every = every_step_time("k80x2-cpu", 9, pins={0: 2})
    assert len(every) == 3**8
    assert (every < 1.01 * every.min()).mean() < 0.01
    best = [two_gpus.min(), every.min()]
    said = run("sb3_ppo.py", "sb3_masked_ppo.py", "sb3_any_graph.py:episodes=320")
    assert said["the trained agent"] == pytest.approx(best, rel=2e-4)
    assert all(np.array(said["the untrained agent"]) > 1.1 * np.array(best))
    for graph in ("nmt", "rnnlm"):
        assert said[graph] <= min(said[f"{graph} by {method}"] for method in HEURISTICS)
