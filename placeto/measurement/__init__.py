"""Real execution of placed TensorFlow graphs, timed."""

from typing import TYPE_CHECKING

from placeto.support.late import loaded_late

if TYPE_CHECKING:
    from placeto.measurement.evaluator import MeasuringEvaluator
    from placeto.measurement.fidelity import Conduct, conduct
    from placeto.measurement.measured import Effort, Measurement
    from placeto.measurement.runnable import Runnable, find_runnable
    from placeto.measurement.runtime import Runtime
    from placeto.measurement.tasks import RuntimeSettings
    from placeto.measurement.trials.evaluator import CorrectingEvaluator

_HOMES = {  # workers and drivers, which are started often, need few of them
    "measurement.evaluator": ("MeasuringEvaluator",),
    "measurement.fidelity": ("Conduct", "conduct"),
    "measurement.measured": ("Effort", "Measurement"),
    "measurement.runnable": ("Runnable", "find_runnable"),
    "measurement.runtime": ("Runtime",),
    "measurement.tasks": ("RuntimeSettings",),
    "measurement.trials.evaluator": ("CorrectingEvaluator",),
}

__all__ = [
    "Conduct",
    "CorrectingEvaluator",
    "Effort",
    "Measurement",
    "MeasuringEvaluator",
    "Runnable",
    "Runtime",
    "RuntimeSettings",
    "conduct",
    "find_runnable",
]

__getattr__ = loaded_late(__name__, _HOMES)
