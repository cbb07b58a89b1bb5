"""What the vendors' data sheets say about the device kinds that op times are made for."""

from collections.abc import Iterable, Mapping
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
    "h200": ("NVIDIA H200 SXM 141 GB", 132, 128, 1980e6, 4.8e12),
    "b200": ("NVIDIA B200 of HGX B200", 148, 128, 1980e6, 8e12),
    "a10": ("NVIDIA A10 24 GB", 72, 128, 1695e6, 600e9),
    "l4": ("NVIDIA L4 24 GB", 58, 128, 2040e6, 300e9),
    "l40s": ("NVIDIA L40S 48 GB", 142, 128, 2520e6, 864e9),
    "geforce-rtx-3090": ("NVIDIA GeForce RTX 3090 24 GB", 82, 128, 1695e6, 936e9),
    "geforce-rtx-4090": ("NVIDIA GeForce RTX 4090 24 GB", 128, 128, 2520e6, 1008e9),
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
    "h200": "NVIDIA H200 data sheet: as H100 132 SM, 67 TFLOPS float32; 4.8 TB/s",
    "b200": "NVIDIA HGX B200 and DGX B200 data sheets, an eighth: 600 TFLOPS float32, 64 TB/s; 148 "
    "SM, the clock that makes them 75 TFLOPS",
    "a10": "NVIDIA A10 data sheet: 9216 CUDA cores, boost 1695 MHz, 31.2 TFLOPS float32, 600 GB/s",
    "l4": "NVIDIA L4 data sheet: 7424 CUDA cores, boost 2040 MHz, 30.3 TFLOPS float32, 300 GB/s",
    "l40s": "NVIDIA L40S data sheet: 18176 CUDA cores, boost 2520 MHz, 91.6 TFLOPS float32, "
    "864 GB/s",
    "geforce-rtx-3090": "NVIDIA Ampere GA102 architecture whitepaper: 82 SM, boost 1695 MHz, "
    "35.6 TFLOPS float32, 936 GB/s",
    "geforce-rtx-4090": "NVIDIA Ada architecture whitepaper: 128 SM, boost 2520 MHz, 82.6 TFLOPS "
    "float32, 1008 GB/s",
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


def estimated(meta: Mapping[str, Any], kinds: Iterable[str]) -> list[str]:
    """Of some device kinds those whose op times a graph's meta says are made of peak figures.

    Of a kind that was measured it has the machine instead, and of one that it does not name nothing
    is known.
    """
    costs = meta.get("costs")
    known = costs.get("kinds") if isinstance(costs, Mapping) else None
    found = known if isinstance(known, Mapping) else {}
    return [
        kind
        for kind in kinds
        if isinstance(of_kind := found.get(kind), Mapping) and "flops_per_second" in of_kind
    ]
