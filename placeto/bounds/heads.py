"""Heads: when each op can start at the earliest, if its device is of a given class.

By paths alone, and by joins, of ops that wait for several branches: on one device one after the
other, or transferred.

Suppose that an op v starts at time e on a device d. Every ancestor whose result could not be on d
by e if it ran elsewhere must then run on d, and so must its whole group. Of these forced ops, all
ancestors of v must be over before e; if one machine cannot do that, v does not start at e. This
bound for scheduling with communication delays is that of Papadimitriou and Yannakakis (1990, SIAM
J. Comput. 19), here with sizes of tensors, groups and classes of devices, and with Jackson's
preemptive schedule as the one machine.

What a forced set says is used to find more of it: that an ancestor u elsewhere receives from a
forced op only by a transfer raises u's head, that forced ops only receive from it by transfers
raises the time from u's end to v's start.
"""

from typing import NamedTuple

import numpy as np

from placeto.bounds.relaxed import Relaxed
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.heaps import pop, push
from placeto.support.jit import inner, njit

ROUNDS = 6  # of raising one head
MARGIN = 1e-12  # of a head, by which rounding may not raise it


@njit(cache=True)
def path_heads(relaxed: Relaxed) -> Floats:
    """(num_ops, num_classes) seconds from paths alone; infinite where an op is not allowed.

    For one edge the producer is on the consumer's device and holds it for its launch overhead, or
    it is on another one and its tensor is transferred; ops of one group are on one device. The
    least of these, over the classes that the producer can be on, is what the edge delays its
    consumer by at least; the longest path of such delays holds for every placement.
    """
    heads = np.zeros_like(relaxed.seconds)
    for op in range(len(heads)):
        raise_head(relaxed, heads, op)
    return heads


@inner(cache=True)
def raise_head(relaxed: Relaxed, heads: Floats, op: int) -> None:
    """Raises an op's heads to what its inputs and their heads imply."""
    group, seconds = relaxed.group, relaxed.seconds
    num_classes = seconds.shape[1]
    for c in range(num_classes):
        if not relaxed.allowed[group[op], c]:
            heads[op, c] = np.inf
    for edge in range(relaxed.start[op], relaxed.start[op + 1]):
        before = relaxed.producer[edge]
        for c in range(num_classes):
            ready = heads[before, c] + seconds[before, c] + relaxed.wait[edge, c]
            if group[before] != group[op]:
                for k in range(num_classes):
                    ready = min(
                        ready, heads[before, k] + seconds[before, k] + relaxed.transfer[edge, k, c]
                    )
            heads[op, c] = max(heads[op, c], ready)


@njit(cache=True)
def one_machine(release: Floats, held: Floats, delivery: Floats) -> float:
    """Seconds until the last of some ops of one device is delivered, at the earliest; -inf without.

    The device always works at the released op with the longest delivery, and leaves it when one
    with a longer delivery is released: Jackson's preemptive schedule, which no schedule beats, with
    or without preemption (Carlier 1982, EJOR 11). Its length is the largest, over sets of ops, of
    least release + all that they hold + least delivery.

    Given are (n,) finite seconds before which each op cannot start, seconds that it holds the
    device, and seconds from its end to its delivery.
    """
    count = len(release)
    left = held.copy()
    # Ops that are still to come, the first released first, and those that wait, the longest
    # delivery first.
    due, coming = np.empty(count), np.empty(count, np.int32)
    turn, released = np.empty(count), np.empty(count, np.int32)
    to_come = waiting = 0
    for op in range(count):
        to_come = push(due, coming, to_come, release[op], op)
    now = longest = -np.inf
    while to_come + waiting > 0:
        if waiting == 0:
            now = max(now, due[0])
        while to_come > 0 and due[0] <= now:
            waiting = push(turn, released, waiting, -delivery[coming[0]], coming[0])
            to_come = pop(due, coming, to_come)
        op = released[0]
        event = due[0] if to_come > 0 else np.inf
        if now + left[op] <= event:
            now += left[op]
            longest = max(longest, now + delivery[op])
            waiting = pop(turn, released, waiting)
        else:
            left[op] -= event - now
            now = event
    return longest


class _Work(NamedTuple):
    """What is known of the ancestors of one op v on one device, "here"."""

    ancestors: Ints  # (num_ops,) descending, the first `count` of them
    earliest: Floats  # (num_ops, num_classes + 1) s, heads on other devices; last, on v's device
    here_to: Floats  # (num_ops,) s from the end on v's device to v's start
    away_to: Floats  # (num_ops, num_classes) s from the end on another device
    forced: Bools  # (num_groups,) whether on v's device
    mark: Ints  # (num_ops,) the last op of which this is an ancestor


def join_heads(relaxed: Relaxed, reach: int) -> Floats:
    """(num_ops, num_classes) seconds before which an op cannot start on a device of a class.

    Looked at are an op's `reach` nearest ancestors in topological order; for any number the heads
    are proven.
    """
    num_ops, num_classes = relaxed.seconds.shape
    heads = np.zeros((num_ops, num_classes))
    work = _Work(
        np.empty(num_ops, dtype=np.int64),
        np.zeros((num_ops, num_classes + 1)),
        np.zeros(num_ops),
        np.zeros((num_ops, num_classes)),
        np.zeros(len(relaxed.allowed), dtype=bool),
        np.full(num_ops, -1),
    )
    raise_by_joins(relaxed, heads, work, reach)
    return heads


@njit(cache=True)
def raise_by_joins(relaxed: Relaxed, heads: Floats, work: _Work, reach: int) -> None:
    """Raises heads from 0 to those of `join_heads`."""
    num_ops, num_classes = heads.shape
    for op in range(num_ops):
        raise_head(relaxed, heads, op)
        branches = 0
        for edge in range(relaxed.start[op], relaxed.start[op + 1]):
            before = relaxed.producer[edge]
            end = np.inf
            for c in range(num_classes):
                end = min(end, heads[before, c] + relaxed.seconds[before, c])
            branches += end > 0
        if branches < 2:
            continue
        count = _find_ancestors(relaxed, work, op, reach)
        for c in range(num_classes):
            if relaxed.allowed[relaxed.group[op], c]:
                for _ in range(ROUNDS):
                    start = _refuted_until(relaxed, heads, work, op, c, count)
                    if start <= heads[op, c]:
                        break
                    heads[op, c] = start


@inner(cache=True)
def _find_ancestors(relaxed: Relaxed, work: _Work, op: int, reach: int) -> int:
    work.mark[op] = op
    count = 0
    for before in range(op, -1, -1):
        if work.mark[before] != op:
            continue
        if before < op:
            work.ancestors[count] = before
            count += 1
            if count == reach:
                break
        for edge in range(relaxed.start[before], relaxed.start[before + 1]):
            work.mark[relaxed.producer[edge]] = op
    return count


@inner(cache=True)
def _refuted_until(
    relaxed: Relaxed, heads: Floats, work: _Work, op: int, c: int, count: int
) -> float:
    """Seconds before which `op` is shown not to start on a device of class `c`; its head if none.

    Whatever start before the latest of all times at which forced ops could have been there from
    elsewhere forces the same ops, so that the same proof refutes it.
    """
    head = heads[op, c]
    for group in range(len(work.forced)):
        work.forced[group] = False
    work.forced[relaxed.group[op]] = True
    same_proof = np.inf
    while True:
        _pass_forward(relaxed, heads, work, c, count)
        _pass_backward(relaxed, work, op, c, count)
        end = _one_machine(relaxed, work, c, count)
        if end > head * (1 + MARGIN):
            return min(end, same_proof)
        found, earliest = _force(relaxed, work, c, count, head * (1 + MARGIN))
        if not found:
            return head
        same_proof = min(same_proof, earliest)


@inner(cache=True)
def _pass_forward(relaxed: Relaxed, heads: Floats, work: _Work, c: int, count: int) -> None:
    """Sets `earliest` of the ancestors, the first in topological order first."""
    group, seconds, earliest = relaxed.group, relaxed.seconds, work.earliest
    here = seconds.shape[1]
    lowest = work.ancestors[count - 1]
    for index in range(count - 1, -1, -1):
        op = work.ancestors[index]
        away = not work.forced[group[op]]
        for place in range(here):
            exists = away and (place != c or relaxed.several[c])
            earliest[op, place] = heads[op, place] if exists else np.inf
        earliest[op, here] = heads[op, c]
        for edge in range(relaxed.start[op], relaxed.start[op + 1]):
            before = relaxed.producer[edge]
            if before < lowest:
                continue
            for place in range(here + 1):
                k = c if place == here else place
                ready = earliest[before, place] + seconds[before, k] + relaxed.wait[edge, k]
                if group[before] != group[op]:
                    for other in range(here if place == here else here + 1):
                        j = c if other == here else other
                        end = earliest[before, other] + seconds[before, j]
                        ready = min(ready, end + relaxed.transfer[edge, j, k])
                earliest[op, place] = max(earliest[op, place], ready)


@inner(cache=True)
def _pass_backward(relaxed: Relaxed, work: _Work, last: int, c: int, count: int) -> None:
    """Sets `here_to` and `away_to` of the ancestors, the last in topological order first."""
    group, seconds = relaxed.group, relaxed.seconds
    here_to, away_to = work.here_to, work.away_to
    num_classes = seconds.shape[1]
    lowest = work.ancestors[count - 1]
    for index in range(count):
        here_to[work.ancestors[index]] = 0.0
        for k in range(num_classes):
            away_to[work.ancestors[index], k] = 0.0
    for index in range(-1, count):
        op = last if index < 0 else work.ancestors[index]
        is_here = index < 0 or work.forced[group[op]]
        from_here = 0.0 if index < 0 else seconds[op, c] + here_to[op]
        for edge in range(relaxed.start[op], relaxed.start[op + 1]):
            before = relaxed.producer[edge]
            if before < lowest:
                continue
            together = group[before] == group[op]
            rest = relaxed.wait[edge, c] + from_here
            if not (together or is_here):
                for k in range(num_classes):
                    there = seconds[op, k] + away_to[op, k]
                    rest = min(rest, relaxed.transfer[edge, c, k] + there)
            here_to[before] = max(here_to[before], rest)
            for k in range(num_classes):
                if together:
                    rest = relaxed.wait[edge, k] + seconds[op, k] + away_to[op, k]
                else:
                    rest = relaxed.transfer[edge, k, c] + from_here
                    if not is_here:
                        there = seconds[op, k] + away_to[op, k]
                        rest = min(rest, relaxed.wait[edge, k] + there)
                        for j in range(num_classes):
                            if j != c or relaxed.several[c]:
                                there = seconds[op, j] + away_to[op, j]
                                rest = min(rest, relaxed.transfer[edge, k, j] + there)
                away_to[before, k] = max(away_to[before, k], rest)


@inner(cache=True)
def _force(relaxed: Relaxed, work: _Work, c: int, count: int, start: float) -> tuple[bool, float]:
    """Forces the groups that elsewhere would be later than `start`: whether any, and by when."""
    group, seconds = relaxed.group, relaxed.seconds
    found, earliest = False, np.inf
    for index in range(count):
        op = work.ancestors[index]
        if work.forced[group[op]]:
            continue
        there = np.inf
        for k in range(seconds.shape[1]):
            there = min(there, work.earliest[op, k] + seconds[op, k] + work.away_to[op, k])
        if there > start:
            work.forced[group[op]] = True
            found, earliest = True, min(earliest, there)
    return found, earliest


@inner(cache=True)
def _one_machine(relaxed: Relaxed, work: _Work, c: int, count: int) -> float:
    """Seconds at which the forced ancestors can be over, infinite if one cannot be here."""
    release, held, delivery = np.empty(count), np.empty(count), np.empty(count)
    size = 0
    overhead = relaxed.overhead[c]
    for index in range(count):
        op = work.ancestors[index]
        group, seconds = relaxed.group[op], relaxed.seconds[op, c]
        if not work.forced[group]:
            continue
        if not relaxed.allowed[group, c]:
            return np.inf
        if seconds > 0:
            # The overhead lies behind the op, in the mirror before it.
            release[size] = work.earliest[op, -1] - (overhead if relaxed.lag_first else 0.0)
            held[size] = seconds + overhead
            delivery[size] = work.here_to[op] - (0.0 if relaxed.lag_first else overhead)
            size += 1
    return one_machine(release[:size], held[:size], delivery[:size])
