"""What is known of TensorFlow's ops by their types."""

import re

from tensorflow.core.framework import types_pb2
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.framework import op_def_registry


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _passes(table: str) -> dict[str, int]:
    rows = [line.split() for line in table.strip().splitlines()]
    return {op: int(passes) for passes, *ops in rows for op in ops}


# They cost nothing anywhere: they pass on a buffer, a handle or a few integers known before the
# step starts. A read of a variable is one: its output is the variable's own buffer.
FREE_OPS = _types("""
    Const NoOp Placeholder PlaceholderV2 PlaceholderWithDefault VarHandleOp VariableV2 Variable
    ReadVariableOp Identity IdentityN RefIdentity Reshape Squeeze ExpandDims Shape ShapeN Rank Size
    StopGradient PreventGradient BroadcastGradientArgs BroadcastArgs ConcatOffset VarIsInitializedOp
    VariableShape EnsureShape GuaranteeConst Bitcast
""")
# Ops without strings whose kernels TensorFlow 2.21 registers for the CPU alone, as far as known.
_CPU_OPS = _types("""
    AllCandidateSampler CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss ComputeAccidentalHits
    EditDistance FixedUnigramCandidateSampler FractionalAvgPool FractionalMaxPool
    LearnedUnigramCandidateSampler LogUniformCandidateSampler PyFunc PyFuncStateless RandomShuffle
    ResizeArea ResizeBicubic ResizeBicubicGrad ThreadUnsafeUnigramCandidateSampler
    UniformCandidateSampler
""")
# Ops that compute much; Grappler has formulas for others, and for most forms of Einsum.
COMPUTE_OPS = _types("BatchMatMulV3 Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2 Einsum")
# Ops that say nothing about what a graph is for when nothing consumes them.
NOT_SINKS = _types("Const Placeholder VarHandleOp Assert ReadVariableOp")
# A read that nothing uses has no effect; checks and prints are not part of the step.
NOT_TARGETS = NOT_SINKS | _types("NoOp Print PrintV2 ResourceGather ResourceGatherNd")
LOOPS = ("While", "StatelessWhile")
BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")  # their first input chooses
CONVOLUTIONS = _types("Conv2D Conv3D DepthwiseConv2dNative")
VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
# Ops that write a variable.
WRITES = re.compile(
    r"Assign|(Resource)?(Sparse)?Apply[A-Z]|ResourceScatter|"
    r"Scatter(Nd)?(Add|Div|Max|Min|Mul|Sub|Update)"
)
# Passes over the variable's own size that an update makes through memory, everything read or
# written counted once. Grappler sees a handle of no size in place of the variable. An assignment
# may alias its value instead of copying it, which is decided at run time; the copy is charged.
DENSE_PASSES = _passes("""
    2 AssignVariableOp
    3 AssignAddVariableOp AssignSubVariableOp ResourceApplyGradientDescent
    5 ResourceApplyMomentum ResourceApplyKerasMomentum ResourceApplyAdagrad ResourceApplyAdagradV2
    7 ResourceApplyRMSProp ResourceApplyAdam ResourceApplyFtrl ResourceApplyAdadelta
    9 ResourceApplyCenteredRMSProp ResourceApplyAdamWithAmsgrad
""")
# The same for updates of a few rows, over the size of the rows.
SPARSE_PASSES = _passes("""
    2 ResourceScatterUpdate
    3 ResourceScatterAdd ResourceScatterSub
    5 ResourceSparseApplyMomentum ResourceSparseApplyKerasMomentum
    5 ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2
    7 ResourceSparseApplyRMSProp ResourceSparseApplyFtrl
""")


def gpu_can_run(node: NodeDef) -> bool:
    """Whether TensorFlow has a GPU kernel for the op.

    TensorFlow keeps strings in host memory and gives no kernel that computes on them to a GPU.
    """
    if node.op in _CPU_OPS:
        return False
    definition = op_def_registry.get(node.op)
    arguments = () if definition is None else (*definition.input_arg, *definition.output_arg)
    return not any(each.type == types_pb2.DT_STRING for each in arguments) and not any(
        value.type == types_pb2.DT_STRING or types_pb2.DT_STRING in value.list.type
        for value in node.attr.values()
    )
