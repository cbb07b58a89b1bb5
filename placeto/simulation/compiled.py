"""The compiled form of a problem: what the kernel runs, reduced where no placement can tell.

Three things are taken out of a graph. None of them changes a step time, a start or finish of an
op, a transfer, or a device's peak memory, whatever the placement of the groups:

**Constants.** An op without inputs and of no duration on any device, whose outputs stay in its
group, is not simulated if each of its consumers C has another input, from an op A of the same
group, that comes later in every device's queue: A has a higher number, or cannot be ready at the
first instant, since an op that takes time comes before it. Constant, A and C share a device, which
takes ops in the order in which they became ready, then by number; so the constant is over before A
starts, and C never waits for it. It takes no time, sends nothing, and is not the last op. What is
left of it are its outputs' bytes, which the kernel adds when the constant's turn comes. Constants
of one group that follow each other, with no op between them that could be ready at 0, have their
turns in one instant and are added as one.

**Inputs that another input implies.** An op C need not wait for P's output if it waits for an op B
that itself waits for P, all of one group: nothing between ops of one group is ever transferred, and
B finishes after P. Two tensors from P to C are one thing to wait for.

**Holders.** A tensor lives on a device until the last op there that reads it has finished. A reader
whose own output another reader of the same group consumes is never the last.

Any other op of no duration stays: it waits in its device's queue for its turn like every op, and
what it delays depends on the placement.
"""

from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import NDArray

from placeto.graph import Floats, Ints
from placeto.order import compressed
from placeto.problem import Bools, PlacementProblem

Int32s = NDArray[np.int32]

Buffers = tuple[Int32s, Ints, Floats]
"""What one or several states of the simulator are kept in."""

# Rows lie flat, one after the other: an index is a product with a constant, and a row is in one
# cache line. Columns of `Compiled.op_rows`, `op_bytes`, `crossing_rows`, `bundle_rows` and
# `source_rows`, and lengths of rows; a first column of the next row ends what it begins.
LOCAL, CROSSES, HELD, GROUP = range(4)
ALLOCATES, FREES = range(2)
FIRST_BUNDLE, TENSOR = range(2)
BUNDLED, TO_GROUP, LOWEST, HOLDERS = range(4)
SOURCE_OP, RANK, SOURCE_GROUP = range(3)
OP_ROW, CROSSING_ROW, BUNDLE_ROW, SOURCE_ROW = 4, 2, 4, 3

# Implied inputs are not looked for behind ops with more consumers than this.
MANY_CONSUMERS = 64


class Compiled(NamedTuple):
    """A problem as the kernel reads it.

    Ops are those kept, in their order. A tensor *crosses* if an op of another group consumes it;
    a *bundle* is a crossing tensor with all its consumers in one other group. A *slot* counts
    what still holds a piece of memory: first the tensors that stay in their group and have several
    holders, then the crossing tensors, then copies in the order in which they are made. *Holders*
    are numbered alike, with bundles in the place of copies.
    """

    op_rows: Int32s  # (num_kept + 1, 4) first local consumer, crossing tensor, held; group
    op_seconds: Floats  # (num_kept, num_kinds) s
    device_kind: Int32s  # (num_devices,) column of `op_seconds`
    op_bytes: Ints  # (num_kept, 2) allocated at the start, freed at the finish
    missing: Int32s  # (num_kept,) inputs to wait for
    local: Int32s  # (num_local,) consumers in the op's own group
    held: Int32s  # (num_held,) holders that end with an op
    left: Int32s  # (num_slots,) holders in the producer's own group
    slot_bytes: Ints  # (num_slots,)
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


_COMPILED: WeakKeyDictionary[PlacementProblem, Reduction] = WeakKeyDictionary()


def compiled(problem: PlacementProblem) -> Reduction:
    """The compiled form of a problem, made when first asked for."""
    if problem not in _COMPILED:
        _COMPILED[problem] = compile_problem(problem)
    return _COMPILED[problem]


def compile_problem(problem: PlacementProblem, *, reduce: bool = True) -> Reduction:
    """Compiles a problem.

    Args:
        problem: the graph, its grouping and the cluster.
        reduce: whether ops, inputs and holders are taken out; the schedule is the same.
    """
    a, graph = problem.arrays, problem.graph
    num_ops, num_groups, group = graph.num_ops, problem.num_groups, problem.op_group
    producer = a.tensor_producer[a.edge_tensor]
    consumer_group = group[a.edge_consumer]
    inside = group[producer] == consumer_group
    crosses = np.zeros(graph.num_tensors, dtype=bool)
    crosses[a.edge_tensor[~inside]] = True
    num_inputs = np.diff(a.input_start)

    late = _late(
        graph.topological_order, a.op_seconds.min(axis=1), a.input_start, producer[a.inputs]
    )
    constant = np.zeros(num_ops, dtype=bool)
    if reduce:
        constant = (num_inputs == 0) & (a.op_seconds == 0).all(axis=1)
        constant[a.tensor_producer[crosses]] = False
        last_input = np.full(num_ops, -1)  # of the op's own group; late ones come after all
        turn = np.where(late, num_ops, np.arange(num_ops))
        np.maximum.at(last_input, a.edge_consumer[inside], turn[producer[inside]])
        constant[producer[last_input[a.edge_consumer] <= producer]] = False
        read = np.zeros(num_ops, dtype=bool)
        read[producer] = True
        constant &= read
    kept = np.flatnonzero(~constant)
    rank = np.cumsum(~constant) - ~constant  # of a kept op, its number; else of the next

    # Consumers in the op's own group.
    pairs = np.unique(producer[inside] * num_ops + a.edge_consumer[inside])
    tail, head = pairs // num_ops, pairs % num_ops
    local_start, local = compressed(num_ops, tail, head)
    implied = np.zeros(len(local), dtype=bool)
    if reduce:
        _mark_implied(local_start, local, implied)
    awaited = ~implied & ~constant[tail]

    # Who holds a tensor on a device: edges sorted by tensor, group of the consumer, consumer.
    by_bundle = np.argsort(a.edge_tensor * num_groups + consumer_group, kind="stable")
    edge_tensor, edge_consumer = a.edge_tensor[by_bundle], a.edge_consumer[by_bundle]
    edge_group, edge_inside = consumer_group[by_bundle], inside[by_bundle]
    new_bundle = np.ones(len(by_bundle), dtype=bool)
    new_bundle[1:] = (np.diff(edge_tensor) != 0) | (np.diff(edge_group) != 0)
    bundle_of = np.cumsum(new_bundle) - 1
    holds = a.tensor_bytes[edge_tensor] > 0
    if reduce:
        _drop_holders(bundle_of, edge_consumer, local_start, local, holds)

    # Slots and what each op allocates and frees.
    inside_holders = np.bincount(edge_tensor[edge_inside & holds], minlength=graph.num_tensors)
    slotted = np.flatnonzero(~crosses & (inside_holders > 1))
    crossing = np.flatnonzero(crosses)
    crossing = crossing[np.argsort(a.tensor_producer[crossing], kind="stable")]
    holder = np.full(graph.num_tensors, -1)
    holder[slotted] = np.arange(len(slotted))
    holder[crossing] = len(slotted) + np.arange(len(crossing))
    op_bytes = np.zeros((num_ops, 2), dtype=np.int64)
    np.add.at(op_bytes[:, ALLOCATES], a.tensor_producer, a.tensor_bytes)
    unread = ~crosses & (inside_holders == 0)
    np.add.at(op_bytes[:, FREES], a.tensor_producer[unread], a.tensor_bytes[unread])
    constant_bytes = op_bytes[:, ALLOCATES] - op_bytes[:, FREES]
    op_bytes += a.temp_bytes[:, None]
    alone = edge_inside & holds & (holder[edge_tensor] < 0)
    np.add.at(op_bytes[:, FREES], edge_consumer[alone], a.tensor_bytes[edge_tensor[alone]])

    # Bundles of the crossing tensors, in the order of their tensors, then of lowest consumers.
    outside = np.flatnonzero(~edge_inside)
    first = outside[new_bundle[outside]]
    order = np.lexsort((edge_consumer[first], holder[edge_tensor[first]]))
    first = first[order]
    number = np.full(int(bundle_of[-1]) + 1 if len(bundle_of) else 0, -1)
    number[bundle_of[first]] = np.arange(len(first))
    edge_bundle = number[bundle_of[outside]]
    bundled_start, bundled = compressed(len(first), edge_bundle, rank[edge_consumer[outside]])
    bundle_rows = np.zeros((len(first) + 1, 4), dtype=np.int32)
    bundle_rows[:, BUNDLED] = bundled_start
    bundle_rows[:-1, TO_GROUP] = edge_group[first]
    bundle_rows[:-1, LOWEST] = rank[edge_consumer[first]]
    bundle_rows[:-1, HOLDERS] = np.bincount(edge_bundle[holds[outside]], minlength=len(first))
    crossing_rows = np.zeros((len(crossing) + 1, 2), dtype=np.int32)
    first_bundle, _ = compressed(
        len(crossing), holder[edge_tensor[first]] - len(slotted), np.arange(len(first))
    )
    crossing_rows[:, FIRST_BUNDLE] = first_bundle
    crossing_rows[:-1, TENSOR] = crossing

    num_slots = len(slotted) + len(crossing)
    held_inside = np.flatnonzero(edge_inside & holds & (holder[edge_tensor] >= 0))
    held_outside = holds[outside]
    held_start, held = compressed(
        num_ops,
        np.concatenate([edge_consumer[held_inside], edge_consumer[outside[held_outside]]]),
        np.concatenate([holder[edge_tensor[held_inside]], num_slots + edge_bundle[held_outside]]),
    )
    awaited_start, awaited_head = compressed(num_ops, tail[awaited], rank[head[awaited]])
    crossing_start, _ = compressed(num_ops, a.tensor_producer[crossing], np.arange(len(crossing)))
    missing = np.bincount(head[awaited], minlength=num_ops)
    missing += np.bincount(edge_consumer[outside], minlength=num_ops)

    op_rows = np.zeros((len(kept) + 1, 4), dtype=np.int32)
    ends = np.append(kept, num_ops)
    op_rows[:, LOCAL] = awaited_start[ends]
    op_rows[:, CROSSES] = crossing_start[ends]
    op_rows[:, HELD] = held_start[ends]
    op_rows[:-1, GROUP] = group[kept]

    sources = np.flatnonzero((num_inputs == 0) & ~constant)
    constants = np.flatnonzero(constant)
    # Between constants of one class no op could be ready at 0.
    early = np.cumsum(~constant & ~late)[constants]
    _, leader, merged = np.unique(
        early * num_groups + group[constants], return_index=True, return_inverse=True
    )
    lump = np.zeros(len(leader), dtype=np.int64)
    np.add.at(lump, merged, constant_bytes[constants])
    entries = np.concatenate([constants[leader], sources])
    turn = np.argsort(entries)
    source_rows = np.stack(
        [
            np.concatenate([np.full(len(leader), -1), rank[sources]]),
            rank[entries],
            group[entries],
        ],
        axis=1,
    )[turn].astype(np.int32)
    position = np.empty(len(turn), dtype=np.int64)
    position[turn] = np.arange(len(turn))

    _, first_of_kind, device_kind = np.unique(
        [device.kind for device in problem.cluster.devices], return_index=True, return_inverse=True
    )
    group_bytes = np.zeros(num_groups, dtype=np.int64)
    np.add.at(group_bytes, group, a.param_bytes)
    return Reduction(
        Compiled(
            op_rows=op_rows.ravel(),
            op_seconds=a.op_seconds[np.ix_(kept, first_of_kind)].ravel(),
            device_kind=device_kind.astype(np.int32),
            op_bytes=op_bytes[kept].ravel(),
            missing=missing[kept].astype(np.int32),
            local=awaited_head.astype(np.int32),
            held=held.astype(np.int32),
            left=inside_holders[np.concatenate([slotted, crossing])].astype(np.int32),
            slot_bytes=a.tensor_bytes[np.concatenate([slotted, crossing])],
            crossing_rows=crossing_rows.ravel(),
            bundle_rows=bundle_rows.ravel(),
            bundled=bundled.astype(np.int32),
            source_rows=source_rows.ravel(),
            source_bytes=np.concatenate([lump, np.zeros(len(sources), np.int64)])[turn],
            group_bytes=group_bytes,
            launch_overhead=a.launch_overhead,
            channel_between=a.channel_between.ravel(),
            bandwidth=a.bandwidth,
            latency=a.latency,
            overhead=a.overhead,
            multicast=a.multicast,
        ),
        kept=kept,
        constants=constants,
        constant_source=position[merged],
    )


@njit(cache=True)
def _late(order: Ints, least: Floats, start: Ints, producers: Ints) -> Bools:  # pragma: no cover
    """Which ops cannot be ready at 0: an op that takes time on every device comes before."""
    late = np.zeros(len(order), np.bool_)
    for op in order:
        for position in range(start[op], start[op + 1]):
            if late[producers[position]] or least[producers[position]] > 0:
                late[op] = True
                break
    return late


@njit(cache=True)
def _mark_implied(start: Ints, consumers: Ints, implied: Bools) -> None:  # pragma: no cover
    """Marks the (op, consumer) pairs that a third op between them makes superfluous."""
    num_ops = len(start) - 1
    pair = np.full(num_ops, -1)
    for op in range(num_ops):
        if start[op + 1] - start[op] < 2:
            continue
        for position in range(start[op], start[op + 1]):
            pair[consumers[position]] = position
        for position in range(start[op], start[op + 1]):
            between = consumers[position]
            if start[between + 1] - start[between] > MANY_CONSUMERS:
                continue
            for behind in range(start[between], start[between + 1]):
                if pair[consumers[behind]] >= 0:
                    implied[pair[consumers[behind]]] = True
        for position in range(start[op], start[op + 1]):
            pair[consumers[position]] = -1


@njit(cache=True)
def _drop_holders(
    bundle: Ints, reader: Ints, start: Ints, consumers: Ints, holds: Bools
) -> None:  # pragma: no cover
    """Clears `holds` where another reader of the same bundle consumes the reader's output."""
    reads = np.full(len(start) - 1, -1)
    begin = 0
    while begin < len(bundle):
        end = begin
        while end < len(bundle) and bundle[end] == bundle[begin]:
            reads[reader[end]] = bundle[begin]
            end += 1
        if holds[begin] and end - begin > 1:
            for edge in range(begin, end):
                op = reader[edge]
                if start[op + 1] - start[op] > MANY_CONSUMERS:
                    continue
                for position in range(start[op], start[op + 1]):
                    if reads[consumers[position]] == bundle[begin]:
                        holds[edge] = False
                        break
        begin = end
