"""Event-driven simulation of one training step (semantics version 1)."""

from pathlib import Path

from placeto.jit import drop_stale_kernels
from placeto.simulation.batch import EvaluatedBatch
from placeto.simulation.evaluator import Evaluator, find_evaluator, penalised_time
from placeto.simulation.memory import memory_over_time
from placeto.simulation.schedule import Schedule, Transfers
from placeto.simulation.simulate import Outcomes, simulate, simulate_many, step_times
from placeto.simulation.timeline import save_timeline, timeline

drop_stale_kernels(Path(__file__).parent)

__all__ = [
    "EvaluatedBatch",
    "Evaluator",
    "Outcomes",
    "Schedule",
    "Transfers",
    "find_evaluator",
    "memory_over_time",
    "penalised_time",
    "save_timeline",
    "simulate",
    "simulate_many",
    "step_times",
    "timeline",
]
