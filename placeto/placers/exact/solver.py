"""Runs CP-SAT on a model, its placements offered as they come."""

import queue
import threading
from collections.abc import Sequence

import numpy as np

from placeto.placers.base import Incumbent, NotApplicable
from placeto.placers.exact.assignment import Assignment, assignment
from placeto.placers.exact.branching import ROUNDING
from placeto.placers.exact.cp_sat import LOADED_TOO_LATE, cp_model
from placeto.placers.exact.schedules import add_schedule
from placeto.units import format_seconds


def solve(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Offers the placements of ever shorter schedules, and proves a bound (OR-tools' CP-SAT).

    The schedules are those of `add_schedule`, whose devices and channels serve in the best order;
    the simulator's are no shorter. Ends when the shortest is proven, or when the budget does.

    Args:
        incumbent: has a placement with a step time of more than 0, which the search starts from.
        rng: seeds the solver.

    Raises:
        NotApplicable: TensorFlow was loaded before the solver, which would crash.
    """
    if LOADED_TOO_LATE:
        raise NotApplicable(
            "exact: CP-SAT would crash in a process that loaded TensorFlow before it; "
            "import ortools.sat.python.cp_model first"
        )
    made = assignment(incumbent.problem, incumbent.step_time, incumbent.feasible)
    add_schedule(incumbent.problem, made)
    assert incumbent.devices is not None
    for literals, device in zip(made.on, incumbent.devices.tolist(), strict=True):
        for number, literal in enumerate(literals):
            made.model.add_hint(literal, number == device)
    minimise(incumbent, made, int(rng.integers(2**31)))


def minimise(incumbent: Incumbent, made: Assignment, seed: int) -> None:
    """Solves a model until its optimum is proven or the budget is spent.

    The solver runs in a thread of its own, with one worker so that the seed decides what it
    finds. This thread simulates that, and an interrupt reaches it at once; what was proven until
    then counts.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_time_in_seconds = max(incumbent.budget_seconds - incumbent.seconds, 0.01)
    found = _Found(made.on)
    status: list[cp_model.CpSolverStatus] = []
    thread = threading.Thread(target=lambda: status.append(solver.solve(made.model, found)))
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.05)
            _offer(incumbent, found)
    finally:
        solver.stop_search()
        thread.join()
        if status == [cp_model.INFEASIBLE]:
            incumbent.prove(np.inf)
        else:
            incumbent.prove(solver.best_objective_bound * made.tick * (1 - ROUNDING))
        _offer(incumbent, found)


class _Found(cp_model.CpSolverSolutionCallback):
    """Queues the placement of each solution; called by the solver's thread."""

    def __init__(self, on: Sequence[Sequence[cp_model.IntVar]]) -> None:
        super().__init__()
        self.placements: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self._on = on

    def on_solution_callback(self) -> None:
        """Takes note of where the groups are."""
        self.placements.put(
            [[self.boolean_value(literal) for literal in row].index(True) for row in self._on]
        )


def _offer(incumbent: Incumbent, found: _Found) -> None:
    while not found.placements.empty():
        incumbent.offer(found.placements.get())
        incumbent.progress(
            f"CP-SAT: {incumbent.evaluations:,} placements simulated, "
            f"best {format_seconds(incumbent.step_time)}"
        )
