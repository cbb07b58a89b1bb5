"""The pairing heap beside Python's heap."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.simulation.queues import (
    HEAP,
    LAST,
    enqueue,
    heap_insert,
    heap_rest,
    next_transfer,
    pop,
    push,
    request,
)

INSTANTS = st.sampled_from([0.0, 0.5, 1.0])
ITEMS = st.lists(st.tuples(INSTANTS, st.integers(0, 5)), max_size=60)


def columns(items):
    since = np.array([instant for instant, _ in items], dtype=float)
    keys = np.array([(key, number) for number, (_, key) in enumerate(items)], dtype=np.int32)
    return since, keys.reshape(-1, 2), np.zeros((len(items), 2), dtype=np.int32)


@given(ITEMS, st.lists(st.booleans(), max_size=200))
def test_heap_gives_the_least(items, takes):
    since, keys, links = columns(items)
    ours, theirs, root, added = [], [], -1, 0
    expected = []
    for take in [*takes, *[False] * len(items), *[True] * len(items)]:
        if take and root >= 0:
            ours.append(tuple(keys[root]))
            root = heap_rest(links, since, keys, root)
            expected.append(heapq.heappop(theirs)[1:])
        elif not take and added < len(items):
            root = heap_insert(links, since, keys, root, added)
            heapq.heappush(theirs, (items[added][0], *keys[added]))
            added += 1
    assert root == -1
    assert ours == expected
    assert len(ours) == len(items)


@given(ITEMS, st.lists(st.booleans(), max_size=200))
def test_transfers_in_the_order_of_instant_and_keys(items, takes):
    items = sorted(items, key=lambda item: item[0])  # instants only grow
    since, keys, links = columns(items)
    queue = np.full((2, 5), -1, dtype=np.int32)
    theirs, added = [], 0
    for take in [*takes, *[False] * len(items), *[True] * (len(items) + 1)]:
        if take:
            found = next_transfer(queue, since, links, keys, 1)
            assert found == (heapq.heappop(theirs)[2] if theirs else -1)
        elif added < len(items):
            request(queue, since, links, keys, 1, added)
            heapq.heappush(theirs, (items[added][0], keys[added, 0], added))
            added += 1
    assert (queue[0] == -1).all()
    assert queue[1, HEAP] == queue[1, LAST] == -1


def test_ops_in_order_take_no_heap():
    ready, queue = np.zeros((1, 4), dtype=np.int32), np.array([[0, 0, -1, -1, -1]], dtype=np.int32)
    since, links = np.zeros(4), np.zeros((4, 2), dtype=np.int32)
    keys = np.repeat(np.arange(4, dtype=np.int32)[:, None], 2, axis=1)
    for op, now in ((0, 0.0), (2, 0.0), (1, 1.0)):
        enqueue(queue, ready, since, links, keys, 0, op, now)
    assert queue[0].tolist() == [0, 3, -1, -1, -1]
    assert ready[0, :3].tolist() == [0, 2, 1]
    enqueue(queue, ready, since, links, keys, 0, 3, 0.5)
    assert queue[0].tolist() == [0, 3, 3, -1, -1]


@given(st.lists(st.floats(0, 10), max_size=60))
def test_events_come_by_time(times):
    heap, codes = np.zeros(len(times)), np.zeros(len(times), dtype=np.int32)
    size = 0
    for code, time in enumerate(times):
        size = push(heap, codes, size, time, code)
    found = []
    while size > 0:
        assert times[codes[0]] == heap[0]
        found.append(heap[0])
        size = pop(heap, codes, size)
    assert found == sorted(times)
