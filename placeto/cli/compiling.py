"""What `placeto place` has compiled by another process, where nothing is compiled yet."""

import math

import numpy as np

from placeto.bounds import lower_bound
from placeto.heuristics.etf import earliest_finish
from placeto.heuristics.initial import all_on
from placeto.problem import PlacementProblem
from placeto.search.auto import small_problem
from placeto.search.incumbent import Incumbent
from placeto.search.policy import compiled_policy, offer_greedy, stored
from placeto.search.settings import SHIPPED
from placeto.simulation import simulate
from placeto.simulation.scaled import scaled_problem
from placeto.support.beside import done


def compile_all() -> None:
    """Compiles groups and the bounds, ETF, a policy's sweeps, and transfers of several parts."""
    problem = small_problem()
    PlacementProblem(problem.graph, problem.cluster, 2)
    done("groups")
    halves = np.arange(problem.graph.num_ops) * 2 // problem.graph.num_ops
    lower_bound(PlacementProblem(problem.graph, problem.cluster, halves))
    done("bounds")
    earliest_finish(problem)
    ready = compiled_policy(stored(SHIPPED), problem)
    offer_greedy(Incumbent(problem, math.inf), ready, all_on(problem, 0))
    simulate(scaled_problem(problem, ends=2.0), all_on(problem, 0))
