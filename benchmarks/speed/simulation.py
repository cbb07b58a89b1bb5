"""Seconds a simulation, compile time and peak memory of one graph."""

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks.speed.others import grappler, has_grappler, reference_outcomes
from benchmarks.speed.timing import Times, in_turn, repeated, seconds, times
from benchmarks.synthetic import synthetic_graph
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.heuristics.initial import all_on, expert_placement, random_placement
from placeto.simulation import EvaluatedBatch, simulate_many
from placeto.simulation.reduction import compile_problem
from placeto.support.arrays import Ints

CLUSTER = "k80x4"
BUNDLED = ("inception_v3", "nmt")
SYNTHETIC = {"synthetic_1k": 1_000, "synthetic_10k": 10_000, "synthetic_80k": 80_000,
             "synthetic_1m": 1_000_000}  # fmt: skip
GRAPHS = (*BUNDLED, *SYNTHETIC)
GROUPINGS = ("auto", "none")
LARGE, HUGE = 50_000, 500_000  # ops from which on less is repeated, or left out
PLACEMENTS = ("one device", "expert", "random")
COMPARED = ("expert", "random")
ROW = np.zeros(1, dtype=np.int64)


def simulation_speed(name: str, grouping: str) -> dict[str, Any]:
    """All that is measured of one graph with one grouping; in a process of its own."""
    numba.set_num_threads(1)
    graph = synthetic_graph(SYNTHETIC[name]) if name in SYNTHETIC else load_graph(name)
    problem = PlacementProblem(graph, load_cluster(CLUSTER), grouping)
    large = graph.num_ops >= LARGE
    _ = problem.arrays, graph.inputs
    compiling = repeated(partial(compile_problem, problem))
    rng = np.random.default_rng(0)
    randoms = [random_placement(problem, rng) for _ in range(4 if large else 16)]
    placements = [all_on(problem, 0), expert_placement(problem), *randoms]
    size = 8 if graph.num_ops >= HUGE else 64
    return {
        "graph": name,
        "grouping": grouping,
        "ops": graph.num_ops,
        "groups": problem.num_groups,
        "compile": compiling,
        "batch size": size,
        "batch": batched(problem, size, rng),
        "one change": one_change(problem, placements[1], 8 if large else 64),
        # The most that the process has taken so far, making the graph included.
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **one(problem, placements, 1 if large else 3, min(50, max(5, 10**6 // graph.num_ops))),
    }


def one(
    problem: PlacementProblem, placements: Sequence[Ints], rounds: int, repeats: int
) -> dict[str, Any]:
    """Seconds a placement from scratch on one core, and what it is compared with.

    `simulate_many` with a single placement, the Python around the kernel included. The placements
    take turns: the processor soon foresees the branches of one that is simulated again and again.

    Args:
        problem: what is placed.
        placements: one device, the expert's, then random ones.
        rounds: how often the others have their turn.
        repeats: how often each placement is simulated before that.

    Returns:
        `one`: of one device, the expert's and the random ones; and `compared`, unless every
        op is a group: of the expert's placement and a random one, by the plain Python reference
        and, for bundled graphs, by Grappler, with the step times that they find.
    """
    passes: list[list[float]] = []
    compared: dict[str, list[list[float]]] = {}
    found: dict[str, dict[str, float]] = {}
    calls = [partial(step_time, problem, devices) for devices in placements]
    with ExitStack() as stack:
        simulators = _others(problem, placements[1:3], stack)
        for _ in range(rounds):
            passes += [[seconds(call) for call in calls] for _ in range(repeats)]
            for name, theirs in simulators.items():
                compared.setdefault(name, []).append([seconds(call) for call in theirs])
        for name, theirs in simulators.items():
            found[name] = dict(zip(COMPARED, (float(call()) for call in theirs), strict=True))
    found["placeto"] = dict(zip(COMPARED, (call() for call in calls[1:3]), strict=True))
    if "reference" in found and found["reference"] != found["placeto"]:
        raise AssertionError(f"simulator and reference do not agree: {found}")
    table = np.array(passes)
    parts = dict(zip(PLACEMENTS, (table[:, :1], table[:, 1:2], table[:, 2:]), strict=True))
    return {
        "one": {kind: times(part) for kind, part in parts.items()},
        "compared": {
            name: dict(zip(COMPARED, map(times, np.transpose(theirs)), strict=True))
            for name, theirs in compared.items()
        },
        "step_times": found,
    }


def _others(
    problem: PlacementProblem, placements: Sequence[Ints], stack: ExitStack
) -> dict[str, list[Any]]:
    """For each of the other simulators, a function for each placement: it returns a step time."""
    graph = problem.graph
    if problem.grouping == "none" or graph.num_ops >= HUGE:
        return {}

    def reference(devices: Ints) -> float:
        return float(reference_outcomes(problem, devices[None]).step_time[0])

    others: dict[str, list[Any]] = {"reference": [partial(reference, each) for each in placements]}
    if graph.name in BUNDLED and has_grappler():
        others["grappler"] = [stack.enter_context(grappler(problem, each)) for each in placements]
    return others


def step_time(problem: PlacementProblem, devices: Ints) -> float:
    """The step time of one placement."""
    return float(simulate_many(problem, devices[None], group_start=False).step_time[0])


def batched(problem: PlacementProblem, size: int, rng: np.random.Generator) -> dict[str, Times]:
    """Seconds a placement in a batch of random ones, on one core and on all."""
    many = np.stack([random_placement(problem, rng) for _ in range(size)])

    def took(threads: int) -> float:
        numba.set_num_threads(threads)
        return seconds(partial(simulate_many, problem, many, group_start=False)) / size

    cores = {"one core": 1, "all cores": numba.config.NUMBA_NUM_THREADS}
    takes = {name: partial(took, threads) for name, threads in cores.items()}
    found = in_turn(takes, 20 if problem.graph.num_ops < LARGE else 3)
    numba.set_num_threads(1)
    return found


def one_change(problem: PlacementProblem, devices: Ints, count: int) -> Times:
    """Seconds of a simulation after a random group of a placement went to another device."""
    rng = np.random.default_rng(1)
    batch = EvaluatedBatch(problem, 1)
    batch.place(ROW, devices[None])
    groups = rng.integers(problem.num_groups, size=(count, 1))
    shifts = rng.integers(1, problem.num_devices, size=(count, 1))
    others = (devices[groups] + shifts) % problem.num_devices
    passes = np.empty((3, count))
    for number in range(len(passes)):
        for index, (group, other) in enumerate(zip(groups, others, strict=True)):
            passes[number, index] = seconds(partial(batch.move, ROW, group, other))
            batch.move(ROW, group, devices[group])
    return times(passes)
