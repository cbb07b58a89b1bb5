"""Networks: graph embedding, sequence-to-sequence, and policies."""

from pathlib import Path

from placeto.jit import drop_stale_kernels

drop_stale_kernels(Path(__file__).parent, "features")
