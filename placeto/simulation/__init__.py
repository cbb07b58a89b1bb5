"""Event-driven simulation of one training step."""

from placeto.simulation.control import control_edges, ordered_ops, starting_order
from placeto.simulation.device_time import DeviceSpans, device_spans
from placeto.simulation.evaluator import EvaluatedBatch, Evaluator, find_evaluator
from placeto.simulation.pipeline import (
    Blocks,
    alive_microbatches,
    bubble_share,
    pipeline_blocks,
)
from placeto.simulation.schedule import Parts, Schedule, Transfers, memory_over_time
from placeto.simulation.simulate import Outcomes, simulate, simulate_many, step_times
from placeto.simulation.timeline import save_timeline, timeline

__all__ = [
    "Blocks",
    "DeviceSpans",
    "EvaluatedBatch",
    "Evaluator",
    "Outcomes",
    "Parts",
    "Schedule",
    "Transfers",
    "alive_microbatches",
    "bubble_share",
    "control_edges",
    "device_spans",
    "find_evaluator",
    "memory_over_time",
    "ordered_ops",
    "pipeline_blocks",
    "save_timeline",
    "simulate",
    "simulate_many",
    "starting_order",
    "step_times",
    "timeline",
]
