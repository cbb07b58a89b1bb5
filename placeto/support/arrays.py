"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Int8s = NDArray[np.int8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Features = NDArray[np.float32]
Bools = NDArray[np.bool_]
