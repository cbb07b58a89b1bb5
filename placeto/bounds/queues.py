"""Ops of one group that start in a known order, whatever the placement.

A device serves the op that is ready first, of those ready at the same instant the one with the
lowest number. Ops p and w of one group are on one device. Say that an op is *over by w* if it is
sure to have finished when w becomes ready: it is an ancestor of w, or starts before an ancestor of
w on the same device. Then p becomes ready no later than w if each tensor that p reads is on the
device by then: if w reads it too, or an op of the group that is over by w produces or reads it.
So p starts before w

- if p has the lower number, or
- if such an op x in the place of w takes time and is over by w, since then p was ready before x
  ended.

Sources are ready at 0. A source of lower number is over by w if an ancestor of w in the group is
not a source before it; any source is, if that ancestor has an ancestor that takes time.

A pair p, w is as good as an edge: w starts no earlier than the device is free of p. In a training
step it says that a filter's gradient, ready with the gradient of its input, delays what the latter
waits for. It holds for the simulation's queues, not for schedules that order ops otherwise: ops
with ranks have no pairs. What devices send and receive beside ops delays, and changes no order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeto.problem import PlacementProblem
from placeto.simulation.reduction import behind
from placeto.support.arrays import Bools, Ints
from placeto.support.dags import compressed, topological_order
from placeto.support.jit import inner, njit

Words = NDArray[np.uint64]

PASSES = 8  # each finds more ops that are over by others
MOST_WORK = 100_000_000  # words of 64 bits of a pass; larger groups are left out
SHORTEST = 1e-9  # seconds of an op that takes time: less may be lost in rounding a clock


class _Ops(NamedTuple):
    """What does not change from pass to pass."""

    group: Ints  # (num_ops,)
    takes_time: Bools  # (num_ops,) whether on every device that is allowed
    late: Bools  # (num_ops,) whether an ancestor takes time
    idle: Bools  # (num_ops,) sources that never take time, which delay nothing
    input_start: Ints  # (num_ops + 1,) tensors that each op reads
    read: Ints  # (num_edges,)
    producer: Ints  # (num_tensors,)
    reader_start: Ints  # (num_tensors + 1,) ops that read each tensor
    readers: Ints  # (num_edges,)


class _Steps(NamedTuple):
    """Edges of the graph and pairs known so far, and an order of the ops that obeys both."""

    order: Ints  # (num_ops,)
    position: Ints  # (num_ops,) in the order
    start: Ints  # (num_ops + 1,) edges and pairs that lead to each op
    tail: Ints  # (num_edges + num_pairs,) op they come from
    is_edge: Bools  # (num_edges + num_pairs,)
    member_start: Ints  # (num_groups + 1,) ops of each group
    members: Ints  # (num_ops,) in the order


def queue_pairs(problem: PlacementProblem, allowed: Bools) -> tuple[Ints, Ints]:
    """Pairs of ops, two (n,) arrays, of which the first is always served before the second.

    (num_groups, num_devices) `allowed` tells where groups may be. Pairs that follow from others and
    the graph's edges may be missing.
    """
    graph, op_seconds = problem.graph, problem.op_seconds
    pairs = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if problem.ranks is not None:
        return pairs
    # Groups of more than one op, the smallest first, as many as a pass may look at.
    size = np.bincount(problem.op_group)
    work = (size + 63) // 64 * (graph.num_ops + graph.num_edges + 3 * size**2)
    chosen = np.argsort(size, kind="stable")
    chosen = chosen[size[chosen] > 1]
    chosen = chosen[np.cumsum(work[chosen]) <= MOST_WORK]
    if len(chosen) == 0:
        return pairs
    least = np.where(allowed[problem.op_group], op_seconds, np.inf).min(axis=1)
    takes_time = least >= SHORTEST
    input_start, inputs = graph.inputs
    producers = graph.op_edges[0][inputs]
    ops = _Ops(
        group=problem.op_group,
        takes_time=takes_time,
        late=behind(graph.topological_order, input_start, producers, takes_time),
        idle=(np.diff(input_start) == 0) & (op_seconds == 0).all(axis=1),
        input_start=input_start,
        read=graph.edge_tensor[inputs],
        producer=graph.tensor_producer,
        reader_start=np.searchsorted(graph.edge_tensor, np.arange(graph.num_tensors + 1)),
        readers=graph.edge_consumer,
    )
    for _ in range(PASSES):
        known, pairs = pairs, _pairs(_steps(problem, *pairs), ops, chosen)
        if all(map(np.array_equal, known, pairs)):
            break
    return pairs


def _steps(problem: PlacementProblem, first: Ints, second: Ints) -> _Steps:
    num_ops = problem.graph.num_ops
    source, target = problem.graph.op_edges
    tails, heads = np.concatenate([source, first]), np.concatenate([target, second])
    order = topological_order(num_ops, tails, heads)
    start, edges = compressed(num_ops, heads, np.arange(len(tails)))
    member_start, members = compressed(problem.num_groups, problem.op_group[order], order)
    is_edge = edges < len(source)
    return _Steps(order, np.argsort(order), start, tails[edges], is_edge, member_start, members)


@inner(cache=True)
def _has(row: Words, bit: int) -> bool:
    return (row[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != 0


@inner(cache=True)
def _add(row: Words, bit: int) -> None:
    row[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@inner(cache=True)
def _meet(one: Words, other: Words) -> bool:
    meets = False
    for word in range(len(one)):
        meets |= one[word] & other[word] != 0
    return meets


@inner(cache=True)
def _join(row: Words, other: Words) -> None:
    for word in range(len(row)):
        row[word] |= other[word]


class _Group(NamedTuple):
    """One group's ops in topological order, and sets of them as rows of bits."""

    members: Ints  # (size,) ops
    over: Words  # (size, words) which are over by each
    turn: Ints  # (size,) sources of a lower number are over by each
    timed: Words  # (words,) which take time


@njit(cache=True)
def _pairs(steps: _Steps, ops: _Ops, chosen: Ints) -> tuple[Ints, Ints]:
    """One pass over the chosen groups."""
    num_ops = len(steps.order)
    first, second = np.empty(num_ops, np.int64), np.empty(num_ops, np.int64)
    count = 0
    local = np.empty(num_ops, np.int64)
    for g in chosen:
        members = steps.members[steps.member_start[g] : steps.member_start[g + 1]]
        size = len(members)
        for index in range(size):
            local[members[index]] = index
        group = _over(steps, ops, members, local)
        for p in range(size):
            if ops.idle[members[p]]:
                continue
            if count + size > len(first):
                first, second = _longer(first, count + size), _longer(second, count + size)
            count = _after(ops, group, local, p, first, second, count)
    return first[:count], second[:count]


@inner(cache=True)
def _longer(values: Ints, least: int) -> Ints:
    longer = np.empty(max(2 * len(values), least), np.int64)
    for index in range(len(values)):
        longer[index] = values[index]
    return longer


@inner(cache=True)
def _over(steps: _Steps, ops: _Ops, members: Ints, local: Ints) -> _Group:
    """What is over by each member."""
    size, words = len(members), (len(members) + 63) // 64
    g, begin = ops.group[members[0]], steps.position[members[0]]
    over = np.zeros((size, words), np.uint64)
    # What has started before each op from the first member on to the last.
    before = np.zeros((steps.position[members[-1]] + 1 - begin, words), np.uint64)
    for place in range(len(before)):
        op = steps.order[begin + place]
        row = before[place]
        for edge in range(steps.start[op], steps.start[op + 1]):
            tail = steps.tail[edge]
            tail_place = steps.position[tail] - begin
            if tail_place < 0:
                continue
            _join(row, before[tail_place])
            if ops.group[tail] == g:
                _add(row, local[tail])
            if ops.group[op] == g and steps.is_edge[edge]:
                _join(over[local[op]], before[tail_place])
                if ops.group[tail] == g:
                    _add(over[local[op]], local[tail])
    turn, timed = np.full(size, -1), np.zeros(words, np.uint64)
    for w in range(size):
        if ops.takes_time[members[w]]:
            _add(timed, w)
        for x in range(w):
            if _has(over[w], x):
                op = members[x]
                turn[w] = max(turn[w], len(steps.order) if ops.late[op] else op)
    return _Group(members, over, turn, timed)


@inner(cache=True)
def _after(
    ops: _Ops, group: _Group, local: Ints, p: int, first: Ints, second: Ints, count: int
) -> int:
    """Writes pairs of member `p` and what starts after it; returns how many there are now."""
    members, over = group.members, group.over
    op, words = members[p], over.shape[1]
    g = ops.group[op]
    inputs = ops.read[ops.input_start[op] : ops.input_start[op + 1]]
    # Of each input: the group's other ops that produce or read it, and the producer if it is a
    # source of the group, else a number above all.
    touched, source = (
        np.zeros((len(inputs), words), np.uint64),
        np.full(len(inputs), len(ops.group)),
    )
    for index in range(len(inputs)):
        tensor = inputs[index]
        for at in range(ops.reader_start[tensor], ops.reader_start[tensor + 1]):
            reader = ops.readers[at]
            if ops.group[reader] == g and reader != op:
                _add(touched[index], local[reader])
        producer = ops.producer[tensor]
        if ops.group[producer] == g:
            _add(touched[index], local[producer])
            if ops.input_start[producer] == ops.input_start[producer + 1]:
                source[index] = producer
    ready, emitted = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for w in range(len(members)):
        if w == p or _has(over[w], p) or _has(over[p], w):
            continue
        is_ready = True
        for index in range(len(inputs)):
            row = touched[index]
            if not (_has(row, w) or _meet(row, over[w]) or source[index] < group.turn[w]):
                is_ready = False
                break
        if not is_ready:
            continue
        earlier = op < members[w] or (len(inputs) == 0 and ops.late[members[w]])
        for word in range(words):
            if ready[word] & group.timed[word] & over[w, word] != 0:
                earlier = True
        _add(ready, w)
        # Of ops that one of them is over by, the first says it all.
        if earlier and not _meet(emitted, over[w]):
            _add(emitted, w)
            first[count], second[count] = op, members[w]
            count += 1
    return count
