"""What version 2 of the semantics costs a simulation: the ends of transfers, and ranks."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks.speed.timing import in_turn, seconds
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.cluster import EndCost
from placeto.simulation import simulate_many
from placeto.support.arrays import Ints

CLUSTER, PLACEMENTS, BLOCKS, ROUNDS = "k80x4", 64, 16, 20
GRAPHS = ("inception_v3", "nmt", "transformer")
SEND, RECEIVE = (EndCost(0, 40e-6, 0.47e-9),), (EndCost(0, 39e-6, 0.46e-9),)
VERSIONS = ("version 1", "ends", "ends and ranks")


def semantics_speed(name: str) -> dict[str, Any]:
    """Seconds a placement in a batch on one core, version 1 and version 2 in turn."""
    numba.set_num_threads(1)
    graph, cluster = load_graph(name), load_cluster(CLUSTER)
    channels = tuple(replace(each, send=SEND, receive=RECEIVE) for each in cluster.channels)
    plain = PlacementProblem(graph, cluster)
    ends = PlacementProblem(graph, replace(cluster, channels=channels), plain.op_group)
    problems = (plain, ends, replace(ends, order="critical-path"))
    many = blocky(plain, np.random.default_rng(0))

    def took(problem: PlacementProblem) -> float:
        return seconds(partial(simulate_many, problem, many, group_start=False)) / PLACEMENTS

    named = dict(zip(VERSIONS, problems, strict=True))
    takes = {version: partial(took, problem) for version, problem in named.items()}
    return {"graph": name, "times": in_turn(takes, ROUNDS)}


def blocky(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(PLACEMENTS, num_groups) stretches of groups in topological order, on random devices."""
    block = problem.group_position * BLOCKS // problem.num_groups
    return rng.integers(problem.num_devices, size=(PLACEMENTS, BLOCKS))[:, block]


def over_version_1(times: Mapping[str, Mapping[str, float]], version: str) -> float:
    """How many times as long a version takes."""
    return times[version]["fastest"] / times["version 1"]["fastest"]
