"""The pairing heap beside Python's heap."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.simulation import columns as col
from placeto.simulation import queues
from tests.compiled import from_python

enqueue = from_python(queues.enqueue)
heap_insert = from_python(queues.heap_insert)
heap_rest = from_python(queues.heap_rest)
next_transfer = from_python(queues.next_transfer)
pop = from_python(queues.pop)
push = from_python(queues.push)
request = from_python(queues.request)

INSTANTS = st.sampled_from([0.0, 0.5, 1.0])
ITEMS = st.lists(st.tuples(INSTANTS, st.integers(0, 5)), max_size=60)


def columns(items):
    since = np.array([instant for instant, _ in items], dtype=float)
    keys = np.array([(key, number) for number, (_, key) in enumerate(items)], dtype=np.int32)
    return since, keys.ravel(), np.zeros(2 * len(items), dtype=np.int32)


@given(ITEMS, st.lists(st.booleans(), max_size=200))
def test_heap_gives_the_least(items, takes):
    since, keys, links = columns(items)
    ours, theirs, root, added = [], [], -1, 0
    expected = []
    for take in [*takes, *[False] * len(items), *[True] * len(items)]:
        if take and root >= 0:
            ours.append(tuple(keys[2 * root : 2 * root + 2]))
            root = heap_rest((links, since, keys), root)
            expected.append(heapq.heappop(theirs)[1:])
        elif not take and added < len(items):
            root = heap_insert((links, since, keys), root, added)
            heapq.heappush(theirs, (items[added][0], *keys[2 * added : 2 * added + 2]))
            added += 1
    assert root == -1
    assert ours == expected
    assert len(ours) == len(items)


@given(ITEMS, st.lists(st.booleans(), max_size=200))
def test_transfers_in_the_order_of_instant_and_keys(items, takes):
    items = sorted(items, key=lambda item: item[0])  # instants only grow
    since, keys, links = columns(items)
    queue = np.full(2 * col.CHANNEL_ROW, -1, dtype=np.int32)
    theirs, added = [], 0
    for take in [*takes, *[False] * len(items), *[True] * (len(items) + 1)]:
        if take:
            found = next_transfer(queue, (links, since, keys), 1)
            assert found == (heapq.heappop(theirs)[2] if theirs else -1)
        elif added < len(items):
            request(queue, (links, since, keys), 1, added)
            heapq.heappush(theirs, (items[added][0], keys[2 * added], added))
            added += 1
    assert (queue == -1).all()


class ReadyOps:
    """The queue of the second of two devices."""

    def __init__(self, num_ops):
        self.row = np.full(col.DEVICE_ROW * 2, -1)
        self.row[col.DEVICE_ROW :][[col.HEAD, col.TAIL, col.LATEST, col.FIRST_TAIL]] = num_ops
        self.ready = np.zeros(2 * num_ops, dtype=np.int32)
        reals = self.row.view(np.float64)
        reals[col.DEVICE_ROW + col.LATEST_AT] = -1.0
        links = np.zeros(2 * num_ops, dtype=np.int32)
        keys = np.repeat(np.arange(num_ops, dtype=np.int32), 2)
        self.heap = links, np.zeros(num_ops), keys
        self.queues = (self.row, reals, self.ready, self.heap)

    def add(self, op, now):
        enqueue(self.queues, 1, op, now)

    def take(self):
        mine = self.row[col.DEVICE_ROW :]
        head, root = mine[col.HEAD], mine[col.ROOT]
        listed = self.ready[head] if head < mine[col.TAIL] else None
        if root >= 0 and (listed is None or (head >= mine[col.LATEST] and root < listed)):
            mine[col.ROOT] = heap_rest(self.heap, root)
            return root
        mine[col.HEAD] += listed is not None
        return listed


@given(st.data())
def test_ops_in_the_order_of_instant_and_number(data):
    num_ops = data.draw(st.integers(1, 30))
    ops = data.draw(st.permutations(range(num_ops)))
    queue, theirs, now = ReadyOps(num_ops), [], 0.0
    for op in ops:
        now += data.draw(st.sampled_from([0.0, 0.0, 0.0, 1.0]))
        queue.add(op, now)
        heapq.heappush(theirs, (now, op))
        for _ in range(data.draw(st.integers(0, 2))):
            assert queue.take() == (heapq.heappop(theirs)[1] if theirs else None)
    while theirs:
        assert queue.take() == heapq.heappop(theirs)[1]
    assert queue.take() is None
    assert (queue.row[: col.DEVICE_ROW] == -1).all()


def test_ops_in_order_take_no_heap():
    queue = ReadyOps(4)
    for op, now in ((0, 0.0), (2, 0.0), (1, 1.0), (3, 1.0)):
        queue.add(op, now)
    assert queue.row[col.DEVICE_ROW :][col.ROOT] == -1
    assert queue.ready.tolist() == [0, 0, 0, 0, 0, 2, 1, 3]
    assert queue.row[col.DEVICE_ROW :][col.FIRST_TAIL] == 4 + 2


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
