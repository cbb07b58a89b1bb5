"""Small problems, and all of their placements."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from placeto import Cluster, PlacementProblem
from placeto.simulation import Outcomes, simulate_many
from tests.builders import make_cluster
from tests.strategies import SCALES, Scale, clusters_of_links, graphs, problems

MANY = 1024


def all_placements(problem: PlacementProblem) -> np.ndarray:
    """(count, num_groups) every placement that is allowed."""
    choices = [np.flatnonzero(allowed) for allowed in problem.allowed]
    return np.stack([grid.ravel() for grid in np.meshgrid(*choices, indexing="ij")], axis=1)


def ranks(problem: PlacementProblem, outcomes: Outcomes) -> list[tuple[int, float]]:
    """(bytes over the memory limits, seconds) of each outcome; the least is the best."""
    over = np.maximum(outcomes.peak_memory - problem.memory_limit, 0).sum(axis=1)
    return list(zip(over.tolist(), outcomes.step_time.tolist(), strict=True))


def best_rank(problem: PlacementProblem) -> tuple[int, float]:
    """(bytes over the memory limits, seconds) of the best placement of all."""
    return min(ranks(problem, simulate_many(problem, all_placements(problem))))


@st.composite
def alike_clusters(draw: st.DrawFn, scale: Scale) -> Cluster:
    """Devices on alike channels; the last one sometimes unlike the others."""
    cluster = make_cluster(
        draw(st.integers(2, 4)),
        bandwidth=draw(scale.bandwidth),
        latency=draw(scale.delay),
        overhead=draw(scale.delay),
        launch_overhead=draw(scale.delay),
        memory=draw(st.sampled_from([8, 40, 10**9])),
        multicast=draw(st.booleans()),
        shared=draw(st.booleans()),
    )
    *alike, last = (replace(device, kind="fast") for device in cluster.devices)
    change = draw(st.sampled_from([{}, {}, {"kind": "slow"}, {"memory_bytes": 9}]))
    return replace(cluster, devices=(*alike, replace(last, **change)))


@st.composite
def alike_problems(draw: st.DrawFn, max_ops: int) -> PlacementProblem:
    """Random graphs, one op a group or by colocation, on alike devices."""
    scale = draw(SCALES)
    grouping = draw(st.sampled_from(["none", "papers"]))
    return PlacementProblem(draw(graphs(scale, max_ops)), draw(alike_clusters(scale)), grouping)


@st.composite
def small_problems(draw: st.DrawFn, max_ops: int = 6) -> PlacementProblem:
    """Random problems of few placements, some groups pinned."""
    linked = problems(max_ops, made=clusters_of_links, ranked=True)
    problem = draw(problems(max_ops) | alike_problems(max_ops) | linked)
    pins = {
        group: draw(st.sampled_from(np.flatnonzero(problem.allowed[group]).tolist()))
        for group in draw(st.sets(st.integers(0, problem.num_groups - 1), max_size=2))
    }
    while problem.num_devices ** (problem.num_groups - len(pins)) > MANY:
        group = min(set(range(problem.num_groups)) - set(pins))
        pins[group] = int(np.argmax(problem.allowed[group]))
    return PlacementProblem(
        problem.graph, problem.cluster, problem.op_group, pins=pins, order=problem.order
    )
