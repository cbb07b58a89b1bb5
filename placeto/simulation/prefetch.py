"""Asking for memory before it is needed.

On graphs that no cache holds, most of a simulation would be waiting for memory. Ops start in about
the order of their numbers, but at several places of the graph in turn: too many for the processor
to foresee.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from placeto.graph import Floats, Ints
from placeto.simulation.compiled import (
    BUNDLE_ROW,
    BUNDLED,
    CROSSES,
    CROSSING_ROW,
    HELD,
    LOCAL,
    LOWEST,
    OP_WORDS,
    SLOT_ROW,
    TO_GROUP,
    Int16s,
    Int32s,
)
from placeto.simulation.queues import u
from placeto.support.jit import njit

# A problem of fewer ops stays in the caches by itself.
LARGE = 2**15
# How many ops before its start an op is asked for: by number, and by its turn on the device.
AHEAD = 8
TURNS_AHEAD = 4
LINE = 64  # bytes


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Asks for the cache line of an entry of a flat array; the entry need not exist."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        flag = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag]),
            "llvm.prefetch.p0",
        )
        builder.call(function, [address, flag(0), flag(3), flag(1)])  # to read, soon, data
        return context.get_dummy_value()

    return types.void(array, index), codegen


@njit(cache=True, _nrt=False, forceinline=True)
def ask_for_op(
    op_rows: Int32s, op_seconds: Floats, num_kinds: int, op: int
) -> None:  # pragma: no cover
    """Asks for what is read when an op starts."""
    prefetch(op_rows, 2 * OP_WORDS * op)
    prefetch(op_seconds, num_kinds * op)


@njit(cache=True, _nrt=False, forceinline=True)
def ask_for_outputs(
    op_rows: Int32s,
    missing: Int32s,
    local: Int32s,
    held: Int32s,
    slots: Ints,
    crossing_rows: Int32s,
    bundle_rows: Int32s,
    bundled: Int32s,
    device_of: Int16s,
    first_crossing: int,
    op: int,
) -> None:  # pragma: no cover
    """Asks, when an op starts, for what is read when it and the ops behind it finish.

    The fields as in `advance`.
    """
    line = LINE // 4  # entries
    row, ends = 2 * OP_WORDS * op, 2 * OP_WORDS * (op + 1)
    prefetch(missing, op + AHEAD + line)
    prefetch(local, op_rows[u(row + LOCAL)] + 2 * line)
    prefetch(held, op_rows[u(row + HELD)] + 2 * line)
    if op_rows[u(ends + LOCAL)] > op_rows[u(row + LOCAL)]:
        prefetch(missing, local[u(op_rows[u(ends + LOCAL)] - 1)])
    tensor = op_rows[u(row + CROSSES)]
    if op_rows[u(ends + CROSSES)] > tensor:
        bundle = crossing_rows[u(CROSSING_ROW * tensor)]
        prefetch(crossing_rows, CROSSING_ROW * (tensor + AHEAD))
        prefetch(bundle_rows, BUNDLE_ROW * (bundle + AHEAD))
        prefetch(slots, SLOT_ROW * (first_crossing + tensor + AHEAD))
        prefetch(bundled, bundle_rows[u(BUNDLE_ROW * bundle + BUNDLED)] + line)
        prefetch(device_of, bundle_rows[u(BUNDLE_ROW * bundle + TO_GROUP)])
        prefetch(missing, bundle_rows[u(BUNDLE_ROW * bundle + LOWEST)])
