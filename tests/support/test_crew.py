"""Crews: every item is done, whatever becomes of the workers."""

import os
import signal

import numpy as np
import pytest

import placeto
from placeto import PlacetoError
from placeto.support import crew as crews
from placeto.support.crew import Crew, one_a_node
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


def test_workers_that_die_again_and_again_are_given_up(monkeypatch):
    monkeypatch.setattr(crews, "DEATHS", 2)
    with (
        Crew(works.doomed, [{"num_cpus": 1}]) as crew,
        pytest.raises(PlacetoError, match=r"^a worker died 3 times; of the last") as error,
    ):
        list(crew.map([1]))
    assert "\n" not in str(error.value)


def test_workers_that_do_not_start_are_waited_for_with_a_word(monkeypatch):
    monkeypatch.setattr(crews, "PATIENCE", 0.5)

    def stop(line):
        raise TimeoutError(line)

    nowhere = [{"num_cpus": 0, "resources": {"node:192.0.2.1": 0.6}}]
    with (
        Crew(works.squarer, nowhere, stop) as crew,
        pytest.raises(TimeoutError, match="none of 1 workers has started"),
    ):
        crew.start()


def test_errors_of_the_work_are_raised_as_they_are():
    with Crew(works.strict, TWO[:1]) as crew:
        with pytest.raises(PlacetoError, match=r"^zero is refused$"):
            list(crew.map([0]))
        with pytest.raises(ZeroDivisionError):
            list(crew.map([1]))
        assert list(crew.map([2])) == [(0, 1)]
        assert crew.deaths == 0


def test_what_workers_cannot_begin_with_is_an_error_of_the_start(monkeypatch):
    with (
        Crew(works.unwilling, TWO[:1]) as crew,
        pytest.raises(PlacetoError, match=r"^worker 0 can"),
    ):
        crew.start()
    monkeypatch.setattr(placeto, "__version__", "0.0.0")
    with (
        Crew(works.squarer, TWO[:1]) as crew,
        pytest.raises(PlacetoError, match=r"has placeto .*, not 0\.0\.0; all need the same"),
    ):
        crew.start()


def test_arrays_are_as_they_were():
    """An array that can only be read is of another type to numba, and so is one that cannot."""
    open_to_all, frozen = np.zeros(200_000), np.zeros(3)
    frozen.flags.writeable = False
    with Crew(works.flags, TWO[:1]) as crew:
        first, second = (result for _, result in sorted(crew.map([open_to_all, frozen])))
    assert (first[0], second[0]) == (True, False)
    assert first[1].flags.writeable
    assert (first[1] == 1).all()


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


def test_workers_that_measure_need_a_machine_each():
    [options] = one_a_node(1, 2)
    assert options["num_cpus"] == 2
    with Crew(works.numbered, [options]) as crew:
        assert len(list(crew.map([None]))) == 1
    with pytest.raises(PlacetoError, match="2 workers that measure need a machine each, with 1 C"):
        one_a_node(2, 1)
    with pytest.raises(PlacetoError, match="with 3 CPUs; there are 0"):
        one_a_node(1, 3)
