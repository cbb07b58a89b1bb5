"""A chain of the search, against the same in plain Python."""

import math

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, simulate
from placeto.initial import all_on
from placeto.placers.annealing.moves import NUM_MOVES, neighbourhood, propose
from placeto.placers.auto.chain import (
    EVALUATIONS,
    EVENLY,
    LOOKS,
    PATIENCE,
    SPARED,
    Task,
    new_chain,
    run_chain,
)
from placeto.placers.auto.proposals import draw_kind
from placeto.placers.auto.search import unguided
from placeto.simulation.reduction import compiled
from placeto.simulation.state import buffers
from placeto.zoo.synthetic import synthetic_graph


def looks(problem, schedule):
    """When so many ops of a step have finished as the search looks after."""
    finish = np.sort(schedule.finish[compiled(problem).kept])
    left = [len(finish) * (LOOKS - look) // (LOOKS + 1) for look in range(LOOKS)]
    return finish[len(finish) - 1 - np.array(left)]


def plain_chain(problem, devices, temperature, proposals, rng):
    """What `run_chain` does where all placements fit: where it ends, and how many it simulates."""
    space = neighbourhood(problem)
    present, schedule = np.array(devices), simulate(problem, devices)
    tried, gained = np.zeros((2, 100))
    simulated = 0
    for _ in range(proposals):
        kind = draw_kind(tried, gained, NUM_MOVES, EVENLY, rng)
        candidate = present.copy()
        propose(space, candidate, kind, rng)
        if (candidate == present).all():
            continue
        limit = schedule.step_time - temperature * math.log(rng.random())
        proposed = simulate(problem, candidate)
        late = limit - schedule.step_time + PATIENCE * schedule.step_time
        slow = (looks(problem, proposed) > looks(problem, schedule) + late).any()
        slow &= rng.random() >= SPARED
        simulated += 1
        tried[kind] += 1
        if slow or proposed.step_time > limit:
            continue
        gained[kind] += proposed.step_time < schedule.step_time
        present, schedule = candidate, proposed
    return present, simulated


@pytest.mark.parametrize("graph", ["layered", "series_parallel", "random"])
@pytest.mark.parametrize("cluster", ["k80x2", "p100x2-k80x2"])
def test_a_chain_does_as_in_plain_python(graph, cluster):
    problem = PlacementProblem(synthetic_graph(graph, 3, "small"), load_cluster(cluster))
    start = all_on(problem, 0)
    before = simulate(problem, start)
    temperature = 0.003 * before.step_time
    present, simulated = plain_chain(problem, start, temperature, 400, np.random.default_rng(5))

    task = Task(
        compiled(problem).compiled, unguided(problem), neighbourhood(problem), before.step_time
    )
    chain = new_chain(start, before.peak_memory, before.step_time, before.step_time, 0.0)
    states = buffers(task.compiled, 2)
    run_chain(task, chain, *states, temperature, 400, np.random.default_rng(5))
    assert chain.present.tolist() == present.tolist()
    assert chain.numbers[EVALUATIONS] == simulated
