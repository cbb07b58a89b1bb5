"""Op times from floating-point operations and bytes moved, where nothing else is known of an op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.extraction.device_kinds import DEVICE_KINDS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def roofline(flops: ArrayLike, moved_bytes: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """Seconds of each op on every device kind.

    The roofline model (Williams, Waterman, Patterson 2009, "Roofline: an insightful visual
    performance model for multicore architectures"): an op takes its operations over the device's
    peak, or its bytes over the memory's bandwidth, whichever is longer. No op can be faster; real
    kernels are slower.

    Args:
        flops: (num_ops,) floating-point operations.
        moved_bytes: (num_ops,) bytes read and written.

    Returns:
        Device kind -> (num_ops,) seconds, for every kind of `DEVICE_KINDS`.
    """
    operations = np.asarray(flops, dtype=np.float64)
    moved = np.asarray(moved_bytes, dtype=np.float64)
    return {
        kind.name: np.maximum(operations / kind.flops_per_second, moved / kind.bytes_per_second)
        for kind in DEVICE_KINDS
    }


def cost_meta(counted: str) -> dict[str, Any]:
    """What a graph's meta says of costs that were made so.

    Args:
        counted: whose floating-point operations are counted.
    """
    return {
        "model": (
            "roofline: the longer of operations / peak float32 FLOP/s and bytes read and written / "
            f"peak memory bandwidth, both from the data sheet; operations are those of {counted}"
        ),
        "temp_bytes": "not known, 0",
        "kinds": {kind.name: kind.document() for kind in DEVICE_KINDS},
    }
