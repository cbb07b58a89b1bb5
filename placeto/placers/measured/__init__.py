"""A placement that real runs decide: search, measure, correct, search again."""

from placeto.measurement.trials.candidate import Candidate
from placeto.placers.measured.loop import LEAST_RUNS, Measured, place_measured

__all__ = ["LEAST_RUNS", "Candidate", "Measured", "place_measured"]
