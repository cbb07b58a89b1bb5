"""Crews: every item is done, whatever becomes of the workers."""

import os
import signal

import pytest

from placeto import PlacetoError
from placeto.support.crew import Crew
from tests.support import works

TWO = [{"num_cpus": 1}] * 2


@pytest.fixture(autouse=True)
def _running(ray):
    """Every test here needs Ray."""


def test_every_item_is_done():
    with Crew(works.squarer, TWO) as crew:
        assert sorted(crew.map(range(20))) == [(number, number**2) for number in range(20)]
        assert list(crew.map([])) == []
        assert sorted(crew.map([7])) == [(0, 49)]
        assert crew.deaths == 0


def test_an_item_that_a_worker_died_of_is_done_by_another(tmp_path):
    lines = []
    with Crew(works.mortal, TWO, lines.append) as crew:
        found = dict(crew.map([1, tmp_path / "one", 3, tmp_path / "two", 5]))
        assert found == {0: 1, 1: "survived", 2: 9, 3: "survived", 4: 25}
        assert crew.deaths == 2
        assert [line.partition(" ")[2][2:] for line in lines] == [
            "died; another took its place"
        ] * 2
        assert sorted(crew.map([2, 3])) == [(0, 4), (1, 9)]


def test_an_idle_worker_that_is_killed_is_replaced_under_its_number():
    with Crew(works.numbered, [{"num_cpus": 1}]) as crew:
        [(_, (number, first))] = crew.map([None])
        os.kill(first, signal.SIGKILL)
        [(_, (again, second))] = crew.map([None])
        assert (number, again, crew.deaths) == (0, 0, 1)
        assert first != second


def test_errors_of_the_work_are_raised_as_they_are():
    with Crew(works.strict, TWO[:1]) as crew:
        with pytest.raises(PlacetoError, match=r"^zero is refused$"):
            list(crew.map([0]))
        with pytest.raises(ZeroDivisionError):
            list(crew.map([1]))
        assert list(crew.map([2])) == [(0, 1)]
        assert crew.deaths == 0


def test_items_handed_over_one_by_one():
    with Crew(works.squarer, TWO) as crew:
        tickets = {crew.submit(item): item for item in (3, 4)}
        ticket, result = crew.take()
        assert result == tickets.pop(ticket) ** 2
        tickets[crew.submit(5)] = 5
        for _ in range(2):
            ticket, result = crew.take()
            assert result == tickets.pop(ticket) ** 2
        assert not tickets
