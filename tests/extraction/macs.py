"""Counting the work of a model's forward pass."""

from placeto.graph import ComputationGraph

_PRODUCTS = ("Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2")


def forward_macs(graph: ComputationGraph) -> float:
    """Multiply-adds of convolutions and matrix products outside of the gradient."""
    return sum(
        flops / 2
        for name, kind, flops in zip(graph.op_names, graph.op_types, graph.flops, strict=True)
        if kind in _PRODUCTS and not name.startswith("gradient_tape")
    )
