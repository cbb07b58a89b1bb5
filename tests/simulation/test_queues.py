"""The pairing heap beside Python's heap."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.simulation import queues
from placeto.simulation.records import CHANNEL, DEVICE, WAITING
from placeto.support import heaps
from tests.compiled import from_python

enqueue = from_python(queues.enqueue)
heap_insert = from_python(queues.heap_insert)
heap_rest = from_python(queues.heap_rest)
next_transfer = from_python(queues.next_transfer)
pop = from_python(heaps.pop)
push = from_python(heaps.push)
request = from_python(queues.request)

INSTANTS = st.sampled_from([0.0, 0.5, 1.0])
ITEMS = st.lists(st.tuples(INSTANTS, st.integers(0, 5)), max_size=60)


def waiting_items(items):
    waiting = np.zeros(len(items), dtype=WAITING)
    waiting["since"] = [instant for instant, _ in items]
    waiting["first"] = [key for _, key in items]
    waiting["second"] = np.arange(len(items))
    return waiting


@given(ITEMS, st.lists(st.booleans(), max_size=200))
def test_heap_gives_the_least(items, takes):
    waiting = waiting_items(items)
    ours, theirs, root, added = [], [], -1, 0
    expected = []
    for take in [*takes, *[False] * len(items), *[True] * len(items)]:
        if take and root >= 0:
            ours.append((waiting["first"][root], root))
            root = heap_rest(waiting, root)
            expected.append(heapq.heappop(theirs)[1:])
        elif not take and added < len(items):
            root = heap_insert(waiting, root, added)
            heapq.heappush(theirs, (*items[added], added))
            added += 1
    assert root == -1
    assert ours == expected
    assert len(ours) == len(items)


@given(ITEMS, st.lists(st.booleans(), max_size=200))
def test_transfers_in_the_order_of_instant_and_keys(items, takes):
    items = sorted(items, key=lambda item: item[0])  # instants only grow
    waiting = waiting_items(items)
    channels = np.zeros(2, dtype=CHANNEL)
    for field in ("first", "last", "root"):
        channels[field] = -1
    empty = channels.copy()
    theirs, added = [], 0
    for take in [*takes, *[False] * len(items), *[True] * (len(items) + 1)]:
        if take:
            found = next_transfer(channels, waiting, 1)
            assert found == (heapq.heappop(theirs)[2] if theirs else -1)
        elif added < len(items):
            request(channels, waiting, 1, added)
            heapq.heappush(theirs, (*items[added], added))
            added += 1
    assert (channels == empty).all()


class ReadyOps:
    """The queue of the second of two devices."""

    def __init__(self, num_ops):
        self.devices = np.zeros(2, dtype=DEVICE)
        self.first, self.mine = self.devices[0].copy(), self.devices[1]
        for field in ("head", "tail", "latest", "first_tail"):
            self.mine[field] = num_ops
        self.mine["root"], self.mine["latest_at"] = -1, -1.0
        self.ready = np.zeros(2 * num_ops, dtype=np.int32)
        self.waiting = waiting_items([(0.0, op) for op in range(num_ops)])
        self.queues = (self.devices, self.ready, self.waiting)

    def add(self, op, now):
        enqueue(self.queues, 1, op, now)

    def take(self):
        mine = self.mine
        head, root = mine["head"], mine["root"]
        listed = self.ready[head] if head < mine["tail"] else None
        if root >= 0 and (listed is None or (head >= mine["latest"] and root < listed)):
            mine["root"] = heap_rest(self.waiting, root)
            return root
        mine["head"] += listed is not None
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
    assert queue.devices[0] == queue.first


def test_ops_in_order_take_no_heap():
    queue = ReadyOps(4)
    for op, now in ((0, 0.0), (2, 0.0), (1, 1.0), (3, 1.0)):
        queue.add(op, now)
    assert queue.mine["root"] == -1
    assert queue.ready.tolist() == [0, 0, 0, 0, 0, 2, 1, 3]
    assert queue.mine["first_tail"] == 4 + 2


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
