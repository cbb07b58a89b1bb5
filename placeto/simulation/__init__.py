"""Event-driven simulation of one training step (semantics version 1)."""

from placeto.simulation.schedule import Schedule, Transfers
from placeto.simulation.simulate import Outcomes, simulate, simulate_many, step_times

__all__ = ["Outcomes", "Schedule", "Transfers", "simulate", "simulate_many", "step_times"]
