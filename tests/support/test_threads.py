import os
import subprocess
import sys
import threading
from contextlib import closing

import pytest
import torch

from placeto.support.threads import in_threads, one_thread_an_operation


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: request.param)
    return request.param


@pytest.fixture
def two_threads_an_operation():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_items(threads):
    done = threading.Event()

    def last_first(item):
        if item == 0 and threads > 1:
            done.wait()
        elif item == 1:
            done.set()
        return item * item

    assert list(in_threads(last_first, range(20))) == [item * item for item in range(20)]


def test_an_error_of_one_item_is_the_error_of_the_whole(threads):
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda item: 1 / (item - 5), range(20)))


def test_once_closed_nothing_runs(threads):
    before = threading.active_count()
    with closing(in_threads(lambda item: item, range(1000))) as results:
        assert next(results) == 0
        assert threading.active_count() == before + threads
    assert threading.active_count() == before


def test_an_operation_takes_one_thread_in_every_thread(threads, two_threads_an_operation):
    with one_thread_an_operation():
        assert torch.get_num_threads() == 1
        assert set(in_threads(lambda _: torch.get_num_threads(), range(9))) == {1}
    assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError), one_thread_an_operation():
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


def test_it_holds_when_numba_starts_its_threads_first_inside():
    code = (
        "import numba, torch\n"
        "from placeto.support.threads import in_threads, one_thread_an_operation\n"
        "torch.set_num_threads(2)\n"
        "with one_thread_an_operation():\n"
        "    numba.get_num_threads()\n"
        "    print(torch.get_num_threads(), *in_threads(lambda _: torch.get_num_threads(), [0]))\n"
        "print(torch.get_num_threads())\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "1 1\n2\n"


def test_a_thread_has_no_threads_of_its_own(two_threads_an_operation):
    lstm, x = torch.nn.LSTM(96, 64), torch.randn(6, 16, 96)

    def added(item):
        before = len(os.listdir("/proc/self/task"))
        lstm(x)[0].sum().backward()
        return len(os.listdir("/proc/self/task")) - before

    with one_thread_an_operation():
        assert list(in_threads(added, [0])) == [0]
