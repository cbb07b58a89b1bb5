"""What the simulation kernel reads: a problem in flat arrays."""

from dataclasses import dataclass, field
from typing import NamedTuple

from placeto.support.arrays import Bools, Floats, Int32s, Ints

Buffers = tuple[Int32s, Ints, Floats]
"""What one or several states of the simulator are kept in."""

# Rows lie flat, one after the other: an index is a product with a constant, and a row is in one
# cache line. Columns of `Compiled.op_rows`, `op_bytes`, `crossing_rows`, `bundle_rows` and
# `source_rows`, and lengths of rows; a first column of the next row ends what it begins.
LOCAL, CROSSES, HELD, GROUP = range(4)
ALLOCATES, FREES = range(2, 4)
LEFT, BYTES = range(2)
FIRST_BUNDLE, TENSOR = range(2)
BUNDLED, TO_GROUP, LOWEST, HOLDERS = range(4)
SOURCE_OP, RANK, SOURCE_GROUP = range(3)
OP_WORDS = 4  # of 64 bits
SLOT_ROW, CROSSING_ROW, BUNDLE_ROW, SOURCE_ROW = 2, 2, 4, 3


class Compiled(NamedTuple):
    """A problem as the kernel reads it.

    Ops are those kept, in their order. The first two arrays about them are the same memory, 32
    bytes an op, read as eight 32-bit and as four 64-bit integers. A tensor *crosses* if an op of
    another group consumes it; a *bundle* is a crossing tensor with all its consumers in one other
    group. A *slot* counts what still holds a piece of memory: first the tensors that stay in their
    group and have several holders, then the crossing tensors, then copies in the order in which
    they are made. *Holders* are numbered alike, with bundles in the place of copies.
    """

    op_rows: Int32s  # (num_kept + 1, 8) first local consumer, crossing tensor and held, group, …
    op_bytes: Ints  # (num_kept + 1, 4) …, bytes allocated at the start and freed at the finish
    op_seconds: Floats  # (num_kept, num_kinds) s
    device_kind: Int32s  # (num_devices,)
    missing: Int32s  # (num_kept,) inputs to wait for
    local: Int32s  # (num_local,) consumers in the op's own group
    held: Int32s  # (num_held,) holders that end with an op
    slots: Ints  # (num_slots, 2) holders in the producer's own group, bytes
    crossing_rows: Int32s  # (num_crossing + 1, 2) first bundle, tensor of the graph
    bundle_rows: Int32s  # (num_bundles + 1, 4) first consumer, group, lowest consumer, holders
    bundled: Int32s  # (num_bundled,) consumers of bundles
    source_rows: Int32s  # (num_sources, 3) op, or -1 for constants; ops kept before it; group
    source_bytes: Ints  # (num_sources,) what constants allocate
    group_bytes: Ints  # (num_groups,) parameters
    launch_overhead: Floats  # (num_devices,) s
    channel_between: Ints  # (num_devices, num_devices), -1 on the diagonal
    bandwidth: Floats  # (num_channels,) bytes/s
    latency: Floats  # (num_channels,) s
    overhead: Floats  # (num_channels,) s
    multicast: Bools  # (num_channels,)
    kernel: int  # where the compiled kernel is in this process


@dataclass(frozen=True, eq=False)
class Reduction:
    """A compiled problem, and where its ops are in the graph.

    Attributes:
        compiled: what the kernel reads.
        kept: (num_kept,) ops.
        constants: (num_constants,) ops that are not simulated.
        constant_source: (num_constants,) which source of `compiled` each is part of.
        spare: buffers that no simulation uses at the moment.
    """

    compiled: Compiled
    kept: Ints
    constants: Ints
    constant_source: Ints
    spare: list[Buffers] = field(default_factory=list)
