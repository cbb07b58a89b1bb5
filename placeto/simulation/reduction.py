"""Problems compiled for the kernel, and reduced where no placement can tell the difference.

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

from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.compiled import (
    ALLOCATES,
    BUNDLE_ROW,
    BUNDLED,
    CROSSES,
    CROSSING_ROW,
    FIRST_BUNDLE,
    FREES,
    GROUP,
    HELD,
    HOLDERS,
    LOCAL,
    LOWEST,
    OP_WORDS,
    TENSOR,
    TO_GROUP,
    Compiled,
    Reduction,
)
from placeto.simulation.kernel import with_kernel
from placeto.support.arrays import Bools, Floats, Int32s, Ints
from placeto.support.dags import compressed
from placeto.support.jit import njit

# Implied inputs are not looked for behind ops with more consumers than this.
MANY_CONSUMERS = 64


_COMPILED: WeakKeyDictionary[PlacementProblem, Reduction] = WeakKeyDictionary()


def compiled(problem: PlacementProblem, *, kernel: bool = True) -> Reduction:
    """The compiled form of a problem, made when first asked for; see `compile_problem`."""
    found = _COMPILED.get(problem)
    if found is None:
        found = _COMPILED[problem] = compile_problem(problem, kernel=kernel)
    elif kernel and not found.compiled.kernel:
        found = _COMPILED[problem] = replace(found, compiled=with_kernel(found.compiled))
    return found


def compile_problem(
    problem: PlacementProblem, *, reduce: bool = True, kernel: bool = True
) -> Reduction:
    """Compiles a problem.

    Args:
        problem: the graph, its grouping and the cluster.
        reduce: whether ops, inputs and holders are taken out; the schedule is the same.
        kernel: whether it can be simulated, for which the kernel has to be compiled.
    """
    a, group = problem.arrays, problem.op_group
    num_ops, num_groups = problem.graph.num_ops, problem.num_groups
    edges = _edges(problem)
    input_producer = a.tensor_producer[a.edge_tensor[a.inputs]]
    late = _late(
        problem.graph.topological_order, a.op_seconds.min(axis=1), a.input_start, input_producer
    )
    constant = _constants(problem, edges, late) if reduce else np.zeros(num_ops, dtype=bool)
    kept = np.flatnonzero(~constant)
    rank = np.cumsum(~constant) - (~constant).astype(
        np.int64
    )  # of a kept op, its number; else of the next

    # Consumers in the op's own group.
    pairs = np.unique(edges.producer[edges.inside] * num_ops + edges.consumer[edges.inside])
    tail, head = pairs // num_ops, pairs % num_ops
    local_start, local = compressed(num_ops, tail, head)
    implied = np.zeros(len(local), dtype=bool)
    holds = a.tensor_bytes[edges.tensor] > 0
    if reduce:
        _mark_implied(local_start, local, implied)
        _drop_holders(edges.bundle, edges.consumer, local_start, local, holds)
    awaited = ~implied & ~constant[tail]
    memory = _memory(problem, edges, holds)
    bundles = _bundles(edges, holds, rank, memory)

    kinds = [device.kind for device in problem.cluster.devices]
    _, first_of_kind, device_kind = np.unique(kinds, return_index=True, return_inverse=True)
    awaited_start, awaited_head = compressed(num_ops, tail[awaited], rank[head[awaited]])
    crossing_start, _ = compressed(num_ops, a.tensor_producer[memory.crossing], memory.crossing)
    held_start, held = compressed(num_ops, bundles.holding_op, bundles.held)
    op_bytes = np.zeros((len(kept) + 1, OP_WORDS), dtype=np.int64)
    op_rows = op_bytes.view(np.int32)
    ends = np.append(kept, num_ops)
    op_rows[:, LOCAL] = awaited_start[ends]
    op_rows[:, CROSSES] = crossing_start[ends]
    op_rows[:, HELD] = held_start[ends]
    op_rows[:-1, GROUP] = group[kept]
    op_bytes[:-1, ALLOCATES] = (memory.allocates + a.temp_bytes)[kept]
    op_bytes[:-1, FREES] = (memory.frees + a.temp_bytes)[kept]
    missing = np.bincount(head[awaited], minlength=num_ops)
    missing += np.bincount(edges.consumer[~edges.inside], minlength=num_ops)

    # Between constants of one class no op could be ready at 0.
    constants = np.flatnonzero(constant)
    sources = np.flatnonzero((np.diff(a.input_start) == 0) & ~constant)
    early = np.cumsum(~constant & ~late)[constants]
    _, leader, merged = np.unique(
        early * num_groups + group[constants], return_index=True, return_inverse=True
    )
    entries = np.concatenate([constants[leader], sources])
    turn = np.argsort(entries)
    source_op = np.concatenate([np.full(len(leader), -1), rank[sources]])
    source_rows = np.stack([source_op, rank[entries], group[entries]], axis=1)[turn]
    source_bytes = np.zeros(len(entries), dtype=np.int64)
    np.add.at(source_bytes, merged, (memory.allocates - memory.unread)[constants])
    position = np.argsort(turn)

    group_bytes = np.zeros(num_groups, dtype=np.int64)
    np.add.at(group_bytes, group, a.param_bytes)
    c = Compiled(
        op_rows=op_rows.ravel(),
        op_bytes=op_bytes.ravel(),
        op_seconds=a.op_seconds[np.ix_(kept, first_of_kind)].ravel(),
        device_kind=device_kind.astype(np.int32),
        missing=missing[kept].astype(np.int32),
        local=awaited_head.astype(np.int32),
        held=held.astype(np.int32),
        slots=memory.slots.ravel(),
        crossing_rows=bundles.crossing_rows.ravel(),
        bundle_rows=bundles.rows.ravel(),
        bundled=bundles.consumers.astype(np.int32),
        source_rows=source_rows.astype(np.int32).ravel(),
        source_bytes=source_bytes[turn],
        group_bytes=group_bytes,
        launch_overhead=a.launch_overhead,
        channel_between=a.channel_between.ravel(),
        bandwidth=a.bandwidth,
        latency=a.latency,
        overhead=a.overhead,
        multicast=a.multicast,
        kernel=0,
    )
    return Reduction(
        with_kernel(c) if kernel else c,
        kept=kept,
        constants=constants,
        constant_source=position[merged],
    )


class _Edges(NamedTuple):
    """The graph's edges by tensor, group of the consumer, and consumer: (num_edges,) each."""

    tensor: Ints
    producer: Ints
    consumer: Ints
    group: Ints  # of the consumer
    inside: Bools  # whether that is the producer's group too
    bundle: Ints  # counts the pairs of tensor and group


def _edges(problem: PlacementProblem) -> _Edges:
    a, group = problem.arrays, problem.op_group
    order = np.argsort(a.edge_tensor * problem.num_groups + group[a.edge_consumer], kind="stable")
    tensor, consumer = a.edge_tensor[order], a.edge_consumer[order]
    producer, consumer_group = a.tensor_producer[tensor], group[consumer]
    another = np.zeros(len(order), dtype=bool)
    another[1:] = (np.diff(tensor) != 0) | (np.diff(consumer_group) != 0)
    inside = group[producer] == consumer_group
    return _Edges(tensor, producer, consumer, consumer_group, inside, np.cumsum(another))


def _constants(problem: PlacementProblem, edges: _Edges, late: Bools) -> Bools:
    """(num_ops,) which ops are constants in the sense above."""
    a, num_ops = problem.arrays, problem.graph.num_ops
    constant = (np.diff(a.input_start) == 0) & (a.op_seconds == 0).all(axis=1)
    constant[edges.producer[~edges.inside]] = False
    # The last input of an op from its own group, by when its turn comes at the earliest.
    turn = np.where(late, num_ops, np.arange(num_ops))
    last_input = np.full(num_ops, -1)
    inside = edges.inside
    np.maximum.at(last_input, edges.consumer[inside], turn[edges.producer[inside]])
    constant[edges.producer[last_input[edges.consumer] <= edges.producer]] = False
    read = np.zeros(num_ops, dtype=bool)
    read[edges.producer] = True
    return constant & read


class _Memory(NamedTuple):
    """Who holds what: bytes of ops (num_ops,), and tensors that need a slot."""

    allocates: Ints  # bytes of each op's outputs
    unread: Ints  # those that nobody reads
    frees: Ints  # bytes that go with each op: its unread outputs, inputs that it alone holds
    crossing: Ints  # (num_crossing,) tensors, by their producers
    holder: Ints  # (num_tensors,) slot, or -1
    slots: Ints  # (num_slots, 2)


def _memory(problem: PlacementProblem, edges: _Edges, holds: Bools) -> _Memory:
    a, num_ops, num_tensors = problem.arrays, problem.graph.num_ops, problem.graph.num_tensors
    crosses = np.zeros(num_tensors, dtype=bool)
    crosses[edges.tensor[~edges.inside]] = True
    holders = np.bincount(edges.tensor[edges.inside & holds], minlength=num_tensors)
    shared = np.flatnonzero(~crosses & (holders > 1))
    crossing = np.flatnonzero(crosses)
    crossing = crossing[np.argsort(a.tensor_producer[crossing], kind="stable")]
    slotted = np.concatenate([shared, crossing])
    holder = np.full(num_tensors, -1)
    holder[slotted] = np.arange(len(slotted))
    allocates, unread, frees = np.zeros((3, num_ops), dtype=np.int64)
    np.add.at(allocates, a.tensor_producer, a.tensor_bytes)
    nobody = ~crosses & (holders == 0)
    np.add.at(unread, a.tensor_producer[nobody], a.tensor_bytes[nobody])
    alone = edges.inside & holds & (holder[edges.tensor] < 0)
    np.add.at(frees, edges.consumer[alone], a.tensor_bytes[edges.tensor[alone]])
    slots = np.stack([holders, a.tensor_bytes], axis=1)[slotted]
    return _Memory(allocates, unread, frees + unread, crossing, holder, slots)


class _Bundles(NamedTuple):
    """The crossing tensors' consumers in other groups, and who holds slots."""

    crossing_rows: Int32s  # (num_crossing + 1, 2)
    rows: Int32s  # (num_bundles + 1, 4)
    consumers: Ints  # (num_bundled,)
    holding_op: Ints  # (num_held,) ops
    held: Ints  # (num_held,) the holders that end with them


def _bundles(edges: _Edges, holds: Bools, rank: Ints, memory: _Memory) -> _Bundles:
    outside = np.flatnonzero(~edges.inside)
    _, first = np.unique(edges.bundle[outside], return_index=True)
    first = outside[first]
    # In the order of their tensors, then of their lowest consumers.
    first = first[np.lexsort((edges.consumer[first], memory.holder[edges.tensor[first]]))]
    number = np.zeros(len(edges.bundle), dtype=np.int64)
    number[edges.bundle[first]] = np.arange(len(first))
    bundle = number[edges.bundle[outside]]
    start, consumers = compressed(len(first), bundle, rank[edges.consumer[outside]])
    rows = np.zeros((len(first) + 1, BUNDLE_ROW), dtype=np.int32)
    rows[:, BUNDLED] = start
    rows[:-1, TO_GROUP] = edges.group[first]
    rows[:-1, LOWEST] = rank[edges.consumer[first]]
    rows[:-1, HOLDERS] = np.bincount(bundle[holds[outside]], minlength=len(first))

    num_slots, num_crossing = len(memory.slots), len(memory.crossing)
    crossing = memory.holder[edges.tensor[first]] - (num_slots - num_crossing)
    crossing_rows = np.zeros((num_crossing + 1, CROSSING_ROW), dtype=np.int32)
    crossing_rows[:, FIRST_BUNDLE] = compressed(num_crossing, crossing, crossing)[0]
    crossing_rows[:-1, TENSOR] = memory.crossing

    inside = np.flatnonzero(edges.inside & holds & (memory.holder[edges.tensor] >= 0))
    held_outside = holds[outside]
    return _Bundles(
        crossing_rows=crossing_rows,
        rows=rows,
        consumers=consumers,
        holding_op=np.concatenate([edges.consumer[inside], edges.consumer[outside[held_outside]]]),
        held=np.concatenate(
            [memory.holder[edges.tensor[inside]], num_slots + bundle[held_outside]]
        ),
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
