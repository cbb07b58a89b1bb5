"""OR-tools' CP-SAT, and whether it can be run.

TensorFlow shows its own copy of a library that both use to whatever is loaded after it, and CP-SAT
then crashes. The other way round, both work.
"""

import sys

LOADED_TOO_LATE = "tensorflow" in sys.modules and "ortools.sat.python.cp_model" not in sys.modules

from ortools.sat.python import cp_model  # noqa: E402

__all__ = ["LOADED_TOO_LATE", "cp_model"]
