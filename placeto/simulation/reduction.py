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

With ranks no op is a constant: they say when its turn comes. The other two hold for any order.

Any other op of no duration stays: it waits in its device's queue for its turn like every op, and
what it delays depends on the placement.
"""

from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.kernel import with_kernel
from placeto.simulation.records import BUNDLE, CROSSING, OP, SLOT, SOURCE, Bundles, Crossings, Slots
from placeto.simulation.state import Compiled, Reduction
from placeto.support.arrays import Bools, Ints
from placeto.support.dags import compressed
from placeto.support.jit import njit

MANY_CONSUMERS = 64  # behind ops with more, what another implies is not looked for

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

    Ops, inputs and holders are taken out if `reduce`; the schedule is the same. It can be simulated
    if it has its `kernel`, which has to be compiled.
    """
    graph, group, op_seconds = problem.graph, problem.op_group, problem.op_seconds
    num_ops, num_groups, arrays = graph.num_ops, problem.num_groups, problem.arrays
    edges = _edges(problem)
    input_start, inputs = graph.inputs
    # Which ops cannot be ready at 0.
    takes_time = (op_seconds > 0).all(axis=1)
    late = behind(graph.topological_order, input_start, graph.op_edges[0][inputs], takes_time)
    constant = np.zeros(num_ops, dtype=bool)
    if reduce and problem.ranks is None:
        constant = _constants(problem, edges, late)
    kept = np.flatnonzero(~constant)
    # Of a kept op, its number; else of the next.
    rank = np.cumsum(~constant, dtype=np.int64) - ~constant

    # Consumers in the op's own group.
    pairs = np.unique(edges.producer[edges.inside] * num_ops + edges.consumer[edges.inside])
    tail, head = pairs // num_ops, pairs % num_ops
    local_start, local = compressed(num_ops, tail, head)
    awaited = ~constant[tail]
    holds = graph.tensor_bytes[edges.tensor] > 0
    if reduce:
        awaited &= ~_shortcuts(local_start, local, tail, local)[1]
        holds &= ~_shortcuts(local_start, local, edges.bundle, edges.consumer)[0]
    memory = _memory(problem, edges, holds)
    crossings, bundles, bundled, holders = _bundles(edges, holds, rank, memory)

    kinds = [device.kind for device in problem.cluster.devices]
    _, first_of_kind, device_kind = np.unique(kinds, return_index=True, return_inverse=True)
    columns = op_seconds[np.ix_(kept, first_of_kind)]
    lone_kind = device_kind
    if (problem.alone != 1).any():
        lone_kind = device_kind + columns.shape[1]
        columns = np.concatenate([columns, columns * problem.alone[first_of_kind]], axis=1)
    awaited_start, awaited_head = compressed(num_ops, tail[awaited], rank[head[awaited]])
    crossing_start, _ = compressed(num_ops, graph.tensor_producer[memory.crossing], memory.crossing)
    held_start, held = compressed(num_ops, *holders)
    ops = np.zeros(len(kept) + 1, dtype=OP)
    ends = np.append(kept, num_ops)
    ops["local"] = awaited_start[ends]
    ops["crosses"] = crossing_start[ends]
    ops["held"] = held_start[ends]
    ops["group"][:-1] = group[kept]
    ops["allocates"][:-1] = (memory.allocates + graph.temp_bytes)[kept]
    ops["frees"][:-1] = (memory.frees + graph.temp_bytes)[kept]
    missing = np.bincount(head[awaited], minlength=num_ops)
    missing += np.bincount(edges.consumer[~edges.inside], minlength=num_ops)
    # There are none without ranks, and with ranks all ops are kept.
    before, held_back = problem.held_back.T
    missing += np.bincount(held_back, minlength=num_ops)
    signal_start, signals = compressed(num_ops, before, held_back)

    # Between constants of one class no op could be ready at 0.
    constants = np.flatnonzero(constant)
    source = (np.diff(input_start) == 0) & ~constant
    source[held_back] = False
    kept_sources = np.flatnonzero(source)
    early = np.cumsum(~constant & ~late)[constants]
    _, leader, merged = np.unique(
        early * num_groups + group[constants], return_index=True, return_inverse=True
    )
    entries = np.concatenate([constants[leader], kept_sources])
    turn = np.argsort(entries)
    sources = np.zeros(len(entries), dtype=SOURCE)
    sources["op"] = np.concatenate([np.full(len(leader), -1), rank[kept_sources]])
    sources["rank"] = rank[entries]
    sources["group"] = group[entries]
    np.add.at(sources["bytes"], merged, (memory.allocates - memory.unread)[constants])

    c = Compiled(
        ops=ops,
        op_seconds=columns.ravel(),
        device_kind=device_kind.astype(np.int32),
        lone_kind=lone_kind.astype(np.int32),
        missing=missing[kept].astype(np.int32),
        local=awaited_head.astype(np.int32),
        held=held.astype(np.int32),
        slots=memory.slots,
        crossings=crossings,
        bundles=bundles,
        bundled=bundled.astype(np.int32),
        sources=sources[turn],
        ranks=np.array([] if problem.ranks is None else problem.ranks[kept], dtype=np.int32),
        signal_start=signal_start.astype(np.int32) if len(signals) else np.array([], np.int32),
        signals=signals.astype(np.int32),
        group_bytes=problem.group_parameters,
        **arrays._replace(channel_between=arrays.channel_between.ravel())._asdict(),
        kernel=0,
    )
    return Reduction(with_kernel(c) if kernel else c, kept, constants, np.argsort(turn)[merged])


class _Edges(NamedTuple):
    """The graph's edges by tensor, group of the consumer, and consumer: (num_edges,) each."""

    tensor: Ints
    producer: Ints
    consumer: Ints
    group: Ints  # of the consumer
    inside: Bools  # whether that is the producer's group too
    bundle: Ints  # counts the pairs of tensor and group


def _edges(problem: PlacementProblem) -> _Edges:
    graph, group = problem.graph, problem.op_group
    key = graph.edge_tensor * problem.num_groups + group[graph.edge_consumer]
    order = np.argsort(key, kind="stable")
    tensor, consumer = graph.edge_tensor[order], graph.edge_consumer[order]
    producer, consumer_group = graph.tensor_producer[tensor], group[consumer]
    another = np.diff(key[order], prepend=key[order[:1]]) != 0
    inside = group[producer] == consumer_group
    return _Edges(tensor, producer, consumer, consumer_group, inside, np.cumsum(another))


def _constants(problem: PlacementProblem, edges: _Edges, late: Bools) -> Bools:
    """(num_ops,) which ops are constants in the sense above."""
    num_ops = problem.graph.num_ops
    constant = (np.diff(problem.graph.inputs[0]) == 0) & (problem.op_seconds == 0).all(axis=1)
    constant[edges.producer[~edges.inside]] = False
    # The last input of an op from its own group, by when its turn comes at the earliest.
    turn = np.where(late, num_ops, np.arange(num_ops))
    last_input = np.full(num_ops, -1)
    inside = edges.inside
    np.maximum.at(last_input, edges.consumer[inside], turn[edges.producer[inside]])
    constant[edges.producer[last_input[edges.consumer] <= edges.producer]] = False
    return constant & (np.bincount(edges.producer, minlength=num_ops) > 0)


class _Memory(NamedTuple):
    """Who holds what: bytes of ops (num_ops,), and tensors that need a slot."""

    allocates: Ints  # bytes of each op's outputs
    unread: Ints  # those that nobody reads
    frees: Ints  # bytes that go with each op: its unread outputs, inputs that it alone holds
    crossing: Ints  # (num_crossing,) tensors, by their producers
    holder: Ints  # (num_tensors,) slot, or -1
    slots: Slots  # (num_slots,)


def _memory(problem: PlacementProblem, edges: _Edges, holds: Bools) -> _Memory:
    graph, num_tensors = problem.graph, problem.graph.num_tensors
    crosses = np.zeros(num_tensors, dtype=bool)
    crosses[edges.tensor[~edges.inside]] = True
    holders = np.bincount(edges.tensor[edges.inside & holds], minlength=num_tensors)
    shared = np.flatnonzero(~crosses & (holders > 1))
    crossing = np.flatnonzero(crosses)
    crossing = crossing[np.argsort(graph.tensor_producer[crossing], kind="stable")]
    slotted = np.concatenate([shared, crossing])
    holder = np.full(num_tensors, -1)
    holder[slotted] = np.arange(len(slotted))
    allocates, unread, frees = np.zeros((3, graph.num_ops), dtype=np.int64)
    np.add.at(allocates, graph.tensor_producer, graph.tensor_bytes)
    nobody = ~crosses & (holders == 0)
    np.add.at(unread, graph.tensor_producer[nobody], graph.tensor_bytes[nobody])
    alone = edges.inside & holds & (holder[edges.tensor] < 0)
    np.add.at(frees, edges.consumer[alone], graph.tensor_bytes[edges.tensor[alone]])
    slots = np.zeros(len(slotted), dtype=SLOT)
    slots["left"], slots["bytes"] = holders[slotted], graph.tensor_bytes[slotted]
    return _Memory(allocates, unread, frees + unread, crossing, holder, slots)


def _bundles(
    edges: _Edges, holds: Bools, rank: Ints, memory: _Memory
) -> tuple[Crossings, Bundles, Ints, tuple[Ints, Ints]]:
    """The crossing tensors' consumers in other groups, and who holds slots.

    Returns:
        The crossing tensors (num_crossing + 1,), the bundles (num_bundles + 1,) and their consumers
        (num_bundled,), and pairs of an op and a holder that ends with it.
    """
    outside = np.flatnonzero(~edges.inside)
    first = outside[np.unique(edges.bundle[outside], return_index=True)[1]]
    # In the order of their tensors, then of their lowest consumers.
    first = first[np.lexsort((edges.consumer[first], memory.holder[edges.tensor[first]]))]
    number = np.zeros(len(edges.bundle), dtype=np.int64)
    number[edges.bundle[first]] = np.arange(len(first))
    bundle = number[edges.bundle[outside]]
    start, consumers = compressed(len(first), bundle, rank[edges.consumer[outside]])
    bundles = np.zeros(len(first) + 1, dtype=BUNDLE)
    bundles["consumers"] = start
    bundles["group"][:-1] = edges.group[first]
    bundles["lowest"][:-1] = rank[edges.consumer[first]]
    bundles["holders"][:-1] = np.bincount(bundle[holds[outside]], minlength=len(first))

    num_slots, num_crossing = len(memory.slots), len(memory.crossing)
    crossing = memory.holder[edges.tensor[first]] - (num_slots - num_crossing)
    crossings = np.zeros(num_crossing + 1, dtype=CROSSING)
    crossings["bundles"] = compressed(num_crossing, crossing, crossing)[0]
    crossings["tensor"][:-1] = memory.crossing

    holder = np.where(edges.inside, memory.holder[edges.tensor], num_slots + number[edges.bundle])
    held = holds & (holder >= 0)
    return crossings, bundles, consumers, (edges.consumer[held], holder[held])


@njit(cache=True)
def behind(order: Ints, start: Ints, producers: Ints, marked: Bools) -> Bools:
    """(num_ops,) which ops have a marked ancestor; `producers` are those of each op's inputs."""
    found = np.zeros(len(order), np.bool_)
    for op in order:
        for position in range(start[op], start[op + 1]):
            if found[producers[position]] or marked[producers[position]]:
                found[op] = True
                break
    return found


@njit(cache=True)
def _shortcuts(start: Ints, consumers: Ints, row: Ints, op: Ints) -> tuple[Bools, Bools]:
    """Which of some (row, op) pairs, sorted by row, feed another of their row, and which are fed.

    A pair feeds another whose op consumes, of the local consumers in compressed rows, its own.
    """
    feeds, fed = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
    pair_of = np.full(len(start) - 1, -1)
    begin = 0
    while begin < len(row):
        end = begin
        while end < len(row) and row[end] == row[begin]:
            pair_of[op[end]] = end
            end += 1
        for pair in range(begin, end):
            first, last = start[op[pair]], start[op[pair] + 1]
            if end - begin == 1 or last - first > MANY_CONSUMERS:
                continue
            for position in range(first, last):
                other = pair_of[consumers[position]]
                if other >= begin:
                    feeds[pair] = fed[other] = True
        begin = end
    return feeds, fed
