"""Ops that cost nothing anywhere, and ops that no GPU can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorflow.core.framework.node_def_pb2 import NodeDef

# They pass on a buffer, a handle or a few integers known before the step starts. A read of a
# variable is one: its output is the variable's own buffer.
FREE_OPS = frozenset(
    {
        "Const",
        "NoOp",
        "Placeholder",
        "PlaceholderV2",
        "PlaceholderWithDefault",
        "VarHandleOp",
        "VariableV2",
        "Variable",
        "ReadVariableOp",
        "Identity",
        "IdentityN",
        "RefIdentity",
        "Reshape",
        "Squeeze",
        "ExpandDims",
        "Shape",
        "ShapeN",
        "Rank",
        "Size",
        "StopGradient",
        "PreventGradient",
        "BroadcastGradientArgs",
        "BroadcastArgs",
        "ConcatOffset",
        "VarIsInitializedOp",
        "VariableShape",
        "EnsureShape",
        "GuaranteeConst",
        "Bitcast",
    }
)

# Ops without strings whose kernels TensorFlow 2.21 registers for the CPU alone, as far as known.
_CPU_OPS = frozenset(
    {
        "AllCandidateSampler",
        "CTCBeamSearchDecoder",
        "CTCGreedyDecoder",
        "CTCLoss",
        "ComputeAccidentalHits",
        "EditDistance",
        "FixedUnigramCandidateSampler",
        "FractionalAvgPool",
        "FractionalMaxPool",
        "LearnedUnigramCandidateSampler",
        "LogUniformCandidateSampler",
        "PyFunc",
        "PyFuncStateless",
        "RandomShuffle",
        "ResizeArea",
        "ResizeBicubic",
        "ResizeBicubicGrad",
        "ThreadUnsafeUnigramCandidateSampler",
        "UniformCandidateSampler",
    }
)


def gpu_can_run(node: NodeDef) -> bool:
    """Whether TensorFlow has a GPU kernel for the op.

    TensorFlow keeps strings in host memory and gives no kernel that computes on them to a GPU.
    """
    from tensorflow.core.framework import types_pb2
    from tensorflow.python.framework import op_def_registry

    if node.op in _CPU_OPS:
        return False
    definition = op_def_registry.get(node.op)
    arguments = () if definition is None else (*definition.input_arg, *definition.output_arg)
    return not any(each.type == types_pb2.DT_STRING for each in arguments) and not any(
        value.type == types_pb2.DT_STRING or types_pb2.DT_STRING in value.list.type
        for value in node.attr.values()
    )
