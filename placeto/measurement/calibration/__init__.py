"""Op times, overheads and channels of real devices, measured."""

from placeto.measurement.calibration.calibrate import Calibration, calibrate
from placeto.measurement.calibration.save import save_calibration

__all__ = ["Calibration", "calibrate", "save_calibration"]
