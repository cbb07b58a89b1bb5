"""Real execution of placed TensorFlow graphs, timed."""

from placeto.measurement.effort import Effort
from placeto.measurement.measured import Measurement
from placeto.measurement.runnable import Runnable, find_runnable
from placeto.measurement.runtime import Runtime

__all__ = ["Effort", "Measurement", "Runnable", "Runtime", "find_runnable"]
