"""Real execution of placed TensorFlow graphs, timed."""

from placeto.measurement.evaluator import MeasuringEvaluator
from placeto.measurement.fidelity import Conduct, conduct
from placeto.measurement.measured import Effort, Measurement
from placeto.measurement.runnable import Runnable, find_runnable
from placeto.measurement.runtime import Runtime
from placeto.measurement.tasks import RuntimeSettings

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
