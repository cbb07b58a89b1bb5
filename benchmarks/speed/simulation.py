"""Seconds a simulation, compile time and peak memory of one graph."""

import resource
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from typing import Any

import numba
import numpy as np

from benchmarks.speed.others import grappler, has_grappler, reference_outcomes
from benchmarks.speed.timing import Times, in_turn, seconds, times
from benchmarks.synthetic import synthetic_graph
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.heuristics.initial import all_on, expert_placement, random_placement
from placeto.simulation import EvaluatedBatch, Outcomes, simulate_many
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
COMPILING_SECONDS = 0.15  # at least, in which it is done again and again
ROW = np.zeros(1, dtype=np.int64)


def simulation_speed(name: str, grouping: str) -> dict[str, Any]:
    """All that is measured of one graph with one grouping; in a process of its own."""
    numba.set_num_threads(1)
    graph = synthetic_graph(SYNTHETIC[name]) if name in SYNTHETIC else load_graph(name)
    problem = PlacementProblem(graph, load_cluster(CLUSTER), grouping)
    large = graph.num_ops >= LARGE
    _ = problem.arrays, graph.inputs
    compiling: list[float] = []
    while sum(compiling) < COMPILING_SECONDS:
        compiling.append(seconds(partial(compile_problem, problem)))
    rng = np.random.default_rng(0)
    randoms = [random_placement(problem, rng) for _ in range(4 if large else 16)]
    placements = [all_on(problem, 0), expert_placement(problem), *randoms]
    size = 8 if graph.num_ops >= HUGE else 64
    return {
        "graph": name, "grouping": grouping, "ops": graph.num_ops, "groups": problem.num_groups,
        "compile": times(compiling), "batch size": size, "batch": batched(problem, size, rng),
        "one change": one_change(problem, placements[1], 8 if large else 64),
        # The most that the process has taken so far, making the graph included.
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **one(problem, placements, 1 if large else 3, min(50, max(5, 10**6 // graph.num_ops))),
    }  # fmt: skip


def one(
    problem: PlacementProblem, placements: Sequence[Ints], rounds: int, repeats: int
) -> dict[str, Any]:
    """Seconds a placement from scratch on one core, the Python around the kernel included.

    The placements (one device, the expert's, then random ones) take turns: the processor soon
    foresees the branches of one that is simulated again and again. Each is simulated `repeats`
    times before each of the `rounds` of what it is compared with: of the expert's placement and a
    random one, by the plain Python reference and, for bundled graphs, by Grappler, unless every op
    is a group. `step_times` are what all of them find.
    """
    ours, both = partial(simulate_many, group_start=False), placements[1:3]
    calls = [partial(step_time, ours, problem, devices) for devices in placements]
    others: dict[str, list[Callable[[], float]]] = {}
    with ExitStack() as stack:
        if problem.grouping != "none" and problem.graph.num_ops < HUGE:
            reference = partial(step_time, reference_outcomes, problem)
            others["reference"] = [partial(reference, devices) for devices in both]
            if problem.graph.name in BUNDLED and has_grappler():
                entered = [stack.enter_context(grappler(problem, devices)) for devices in both]
                others["grappler"] = entered
        passes: list[list[float]] = []
        theirs: dict[str, list[list[float]]] = {name: [] for name in others}
        for _ in range(rounds):
            passes += [[seconds(call) for call in calls] for _ in range(repeats)]
            for name, each in others.items():
                theirs[name].append([seconds(call) for call in each])
        others["placeto"] = calls[1:3]
        found = {name: [call() for call in each] for name, each in others.items()}
    if found.get("reference", found["placeto"]) != found["placeto"]:
        raise AssertionError(f"simulator and reference do not agree: {found}")

    def named(kinds: Sequence[str], values: Iterable[Any]) -> dict[str, Any]:
        return dict(zip(kinds, values, strict=True))

    table = np.array(passes)
    return {
        "one": named(PLACEMENTS, map(times, (table[:, :1], table[:, 1:2], table[:, 2:]))),
        "compared": {
            name: named(COMPARED, map(times, np.transpose(each))) for name, each in theirs.items()
        },
        "step_times": {name: named(COMPARED, each) for name, each in found.items()},
    }


def step_time(
    simulator: Callable[..., Outcomes], problem: PlacementProblem, devices: Ints
) -> float:
    """The step time of one placement."""
    return float(simulator(problem, devices[None]).step_time[0])


def batched(problem: PlacementProblem, size: int, rng: np.random.Generator) -> dict[str, Times]:
    """Seconds a placement in a batch of random ones, on one core and on all."""
    many = np.stack([random_placement(problem, rng) for _ in range(size)])

    def took(threads: int) -> float:
        numba.set_num_threads(threads)
        return seconds(partial(simulate_many, problem, many, group_start=False)) / size

    most = numba.config.NUMBA_NUM_THREADS
    takes = {"one core": partial(took, 1), "all cores": partial(took, most)}
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
    passes: list[list[float]] = [[] for _ in range(3)]
    for took, (group, other) in product(passes, zip(groups, others, strict=True)):
        took.append(seconds(partial(batch.move, ROW, group, other)))
        batch.move(ROW, group, devices[group])
    return times(passes)
