"""What the vendors' data sheets say about the device kinds that op times are made for."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from placeto.support.arrays import Floats


@dataclass(frozen=True)
class DeviceKind:
    """Peak figures of one device, float32 without tensor cores.

    Attributes:
        name: the kind, as clusters and graph files call it.
        product: what the vendor calls it.
        multiprocessors: streaming multiprocessors, or CPU cores.
        lanes: float32 fused multiply-adds that one of them issues per clock.
        clock_hertz: the clock at which the data sheet states its peak.
        bytes_per_second: peak memory bandwidth.
        is_gpu: whether ops without a GPU kernel cannot run on it.
        source: where the figures come from.
    """

    name: str
    product: str
    multiprocessors: int
    lanes: int
    clock_hertz: float
    bytes_per_second: float
    is_gpu: bool
    source: str

    @property
    def flops_per_second(self) -> float:
        """Peak float32 FLOP/s; a fused multiply-add counts as two."""
        return 2.0 * self.multiprocessors * self.lanes * self.clock_hertz


# The processor's 16 lanes are two AVX2 FMA ports of 8 float32 each.
_FIGURES = {
    "cpu": ("Intel Xeon E5-2699 v3 (Haswell, 18 cores)", 18, 16, 2.3e9, 68e9),
    "k40": ("NVIDIA Tesla K40", 15, 192, 745e6, 288e9),
    "k80": ("NVIDIA Tesla K80, one of its two GK210", 13, 192, 560e6, 240e9),
    "p100": ("NVIDIA Tesla P100 PCIe 16 GB", 56, 64, 1303e6, 732e9),
    "v100": ("NVIDIA Tesla V100 SXM2", 80, 64, 1530e6, 900e9),
    "a100": ("NVIDIA A100 SXM4 80 GB", 108, 64, 1410e6, 2039e9),
    "h100": ("NVIDIA H100 SXM5 80 GB", 132, 128, 1980e6, 3.35e12),
}
_SOURCES = {
    "cpu": "Intel ARK, Xeon E5-2699 v3: 18 cores, 2.30 GHz, 68 GB/s; the 18-core Haswell host of "
    "Mirhoseini et al. 2017, arXiv:1706.04972",
    "k40": "Tesla K40 board specification BD-06902-001: 15 SMX, 745 MHz, 4.29 TFLOPS, 288 GB/s",
    "k80": "Tesla K80 board specification BD-07317-001: 2 x 13 SMX, base clock 560 MHz, 5.6 TFLOPS "
    "a board without boost, 2 x 240 GB/s",
    "p100": "Tesla P100 PCIe product brief PB-08248-001: 56 SM, boost 1303 MHz, 9.3 TFLOPS, "
    "732 GB/s",
    "v100": "Tesla V100 architecture whitepaper WP-08608-001: 80 SM, boost 1530 MHz, 15.7 TFLOPS, "
    "900 GB/s",
    "a100": "NVIDIA A100 data sheet: 108 SM, boost 1410 MHz, 19.5 TFLOPS float32, 2039 GB/s",
    "h100": "NVIDIA H100 data sheet: 132 SM, boost 1980 MHz, 67 TFLOPS float32, 3.35 TB/s",
}
DEVICE_KINDS = tuple(
    DeviceKind(name, *figures, is_gpu=name != "cpu", source=_SOURCES[name])
    for name, figures in _FIGURES.items()
)
ROOFLINE = (
    "roofline: the longer of operations / peak float32 FLOP/s and bytes read and written / peak "
    "memory bandwidth, both from the data sheet; operations are those of"
)


def roofline(flops: Floats, moved_bytes: Floats) -> dict[str, Floats]:
    """Seconds of each op on every device kind, where nothing else is known of an op.

    The roofline model (Williams, Waterman, Patterson 2009, "Roofline: an insightful visual
    performance model for multicore architectures"): an op takes its operations over the device's
    peak, or its bytes, read and written, over the memory's bandwidth, whichever is longer. No op
    can be faster; real kernels are slower. All arrays are (num_ops,).
    """
    return {
        kind.name: np.maximum(flops / kind.flops_per_second, moved_bytes / kind.bytes_per_second)
        for kind in DEVICE_KINDS
    }


def cost_meta(model: str, temp_bytes: str = "not known, 0") -> dict[str, Any]:
    """What a graph's meta says of its costs: how they were made, and the figures of all kinds."""
    kinds = {
        kind.name: {**asdict(kind), "flops_per_second": kind.flops_per_second}
        for kind in DEVICE_KINDS
    }
    return {"model": model, "temp_bytes": temp_bytes, "kinds": kinds}
