"""A chain of the search, against the same in plain Python."""

import math
from itertools import pairwise

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, simulate
from placeto.heuristics.initial import all_on
from placeto.objective import search_costs
from placeto.search import moves
from placeto.search.chains import (
    EVALUATIONS,
    EVENLY,
    LOOKS,
    PATIENCE,
    SPARED,
    chain_task,
    new_chain,
    run_chain,
)
from placeto.search.incumbent import Incumbent
from placeto.search.moves import NUM_MOVES, neighbourhood
from placeto.simulation.reduction import compiled
from placeto.simulation.state import buffers
from placeto.zoo.synthetic import synthetic_graph
from tests.builders import make_cluster, make_graph, make_problem
from tests.compiled import from_python

propose = from_python(moves.propose)
draw_kind = from_python(moves.draw_kind)


def looks(problem, schedule):
    """When so many ops of a step have finished as the search looks after."""
    finish = np.sort(schedule.finish[compiled(problem).kept])
    left = [len(finish) * (LOOKS - look) // (LOOKS + 1) for look in range(LOOKS)]
    return finish[len(finish) - 1 - np.array(left)]


def cost_of(problem, schedule, scale):
    """What a placement costs the search, in seconds."""
    peak = schedule.peak_memory[None]
    return search_costs(problem, np.array([schedule.step_time]), peak, scale)[0]


def plain_chain(problem, devices, temperature, proposals, scale, rng):
    """What `run_chain` does: where it ends, and how many it simulates."""
    space = neighbourhood(problem)
    present, schedule = np.array(devices), simulate(problem, devices)
    cost = cost_of(problem, schedule, scale)
    tried, gained = np.zeros((2, NUM_MOVES))
    simulated = 0
    for _ in range(proposals):
        kind = draw_kind(tried, gained, EVENLY, rng)
        candidate = present.copy()
        propose(space, candidate, kind, rng)
        if (candidate == present).all():
            continue
        limit = cost - temperature * math.log(rng.random())
        proposed = simulate(problem, candidate)
        proposed_cost = cost_of(problem, proposed, scale)
        late = limit - schedule.step_time + PATIENCE * schedule.step_time
        slow = (looks(problem, proposed) > looks(problem, schedule) + late).any()
        slow &= rng.random() >= SPARED
        simulated += 1
        tried[kind] += 1
        if slow or proposed_cost > limit:
            continue
        gained[kind] += proposed_cost < cost
        present, schedule, cost = candidate, proposed, proposed_cost
    return present, simulated


def check(problem, devices):
    """That both go the same way, and that it is a way."""
    before = simulate(problem, devices)
    scale = before.step_time
    temperature = 0.003 * scale
    present, simulated = plain_chain(
        problem, devices, temperature, 400, scale, np.random.default_rng(5)
    )
    task = chain_task(problem, neighbourhood(problem), scale)
    incumbent = Incumbent(problem, math.inf)
    incumbent.offer(devices)
    chain = new_chain(incumbent, scale)
    states = buffers(task.compiled, 2)
    run_chain(task, chain, states, temperature, 400, np.random.default_rng(5))
    assert chain.present.tolist() == present.tolist() != devices.tolist()
    assert chain.numbers[EVALUATIONS] == simulated
    return simulate(problem, present)


@pytest.mark.parametrize("graph", ["layered", "series_parallel", "random"])
@pytest.mark.parametrize("cluster", ["k80x2", "p100x2-k80x2"])
def test_a_chain_does_as_in_plain_python(graph, cluster):
    problem = PlacementProblem(synthetic_graph(graph, 3, "small"), load_cluster(cluster))
    start = all_on(problem, 0)
    assert check(problem, start).step_time < simulate(problem, start).step_time


def test_what_frees_memory_may_be_far_behind():
    # One device has no room for all; on two, bytes are sent, and the step takes half as long again.
    names = "abcdefghij"
    graph = make_graph(
        dict.fromkeys(names, 1.0),
        [(a, 5, [b]) for a, b in pairwise(names)],
        param_bytes=dict.fromkeys(names, 10),
    )
    problem = make_problem(graph, make_cluster(2, memory=85))
    start = all_on(problem, 0)
    assert not simulate(problem, start).feasible
    ended = check(problem, start)
    assert ended.feasible
    assert ended.step_time == 15.0
