"""Op times, overheads and channels of real devices, measured."""

from placeto.measurement.calibration.calibrate import Calibration, Check, calibrate, calibrated_name
from placeto.measurement.calibration.save import file_names, save_calibration

__all__ = [
    "Calibration",
    "Check",
    "calibrate",
    "calibrated_name",
    "file_names",
    "save_calibration",
]
