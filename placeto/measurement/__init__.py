"""Real execution of placed TensorFlow graphs, timed."""

from placeto.measurement.confine import RuntimeSettings
from placeto.measurement.effort import Effort
from placeto.measurement.evaluator import MeasuringEvaluator
from placeto.measurement.fidelity import Conduct, conduct
from placeto.measurement.measured import Measurement
from placeto.measurement.runnable import Runnable, find_runnable
from placeto.measurement.runtime import Runtime

__all__ = [
    "Conduct",
    "Effort",
    "Measurement",
    "MeasuringEvaluator",
    "Runnable",
    "Runtime",
    "RuntimeSettings",
    "conduct",
    "find_runnable",
]
