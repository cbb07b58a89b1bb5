"""The loop of searches and runs, on workers that are pretended."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph
from placeto.measurement import Measurement
from placeto.measurement.trials import bench
from placeto.placers import PLACERS, Placer, place
from placeto.placers.measured import place_measured
from tests.measurement.trials.pretended import Pretended

DIED = Measurement(reason="worker 1 was killed", died=True)
FAILED = Measurement(reason="no memory")


@pytest.fixture(scope="module")
def problem():
    return PlacementProblem(load_graph("rnnlm"), load_cluster("local-2"), 40)


@pytest.fixture(autouse=True)
def moves(monkeypatch):
    """A search of so many placements, whatever the clock says: single groups that move."""

    def search(incumbent, rng):
        devices = place(incumbent.problem, "m-etf").devices
        incumbent.offer(devices)
        for _ in range(3):
            many = np.repeat(incumbent.best[None], 60, axis=0)
            flips = rng.random(many.shape) < 0.04
            incumbent.offer_many(np.where(flips, 1 - many, many))

    monkeypatch.setitem(PLACERS, "moves", Placer("moves", "", search))


def loop(problem, workers, runs=20, method="moves", seed=0):
    return place_measured(problem, workers, None, method, 1.0, seed, runs=runs)


@pytest.mark.parametrize("seed", range(4))
def test_little_is_lost_in_20_runs_on_a_disturbed_machine(problem, seed):
    workers = Pretended(problem, seed)
    measured = loop(problem, workers, seed=seed)
    assert len(workers.runs) <= 20
    chosen = workers.step_time(measured.placement.devices)
    true = [workers.step_time(each.devices) for each in measured.candidates]
    assert chosen <= 1.01 * min(true)
    assert chosen <= 1.02 * workers.step_time(place(workers.true, "single").devices)
    assert any(np.array_equal(measured.placement.devices, run) for run in workers.runs)


def test_it_ends_before_its_runs_where_nothing_is_to_be_gained(problem):
    workers = Pretended(problem, 1, disturbed=0, drift=0)
    measured = loop(problem, workers, method="single")
    assert measured.stopped == "no run is expected to gain more than the noise"
    assert len(workers.runs) == 1
    assert measured.kept.found_by == "single"


def test_no_run_begins_when_runs_have_no_seconds_left(problem, monkeypatch):
    now = itertools.count(step=2.0)  # a run looks at the clock before and after
    monkeypatch.setattr(bench, "time", SimpleNamespace(monotonic=lambda: next(now)))
    workers = Pretended(problem, 0)
    measured = place_measured(problem, workers, None, "moves", 1.0, run_seconds=5.0)
    assert measured.stopped == "runs have no seconds left"
    assert len(workers.runs) == 3
    assert measured.kept is not None
    with pytest.raises(PlacetoError, match="run_seconds is 0"):
        place_measured(problem, workers, None, run_seconds=0)


def test_the_single_device_is_run_first_and_beside_all_others(problem, monkeypatch):
    workers, asked = Pretended(problem, 0), []
    compare = workers.compare
    monkeypatch.setattr(workers, "compare", lambda p, many, *rest, **more: (
        asked.append(many), compare(p, many, *rest, **more))[1])  # fmt: skip
    loop(problem, workers)
    single = place(problem, "single").devices
    assert len(asked[0]) == 1
    assert {len(many) for many in asked[1:]} == {2}
    assert all(np.array_equal(many[0], single) for many in asked)


def test_later_searches_go_on_from_the_fastest_by_corrected_costs(problem, monkeypatch):
    began = []  # of each search, the placement that it is to refine
    search = PLACERS["moves"].run

    def watched(incumbent, rng):
        began.append(incumbent.best.copy() if incumbent.refines else None)
        search(incumbent, rng)

    monkeypatch.setitem(PLACERS, "moves", Placer("moves", "", watched))
    workers = Pretended(problem, 0, disturbed=0, drift=0)
    loop(problem, workers)
    assert began[0] is began[1] is None  # with costs as believed, and with costly transfers
    refined = [devices for devices in began if devices is not None]
    assert refined
    # By costs that one round has corrected it is faster for real than the best single device.
    assert workers.step_time(refined[0]) < workers.step_time(place(workers.true, "single").devices)


def test_what_is_much_slower_is_given_up(problem):
    workers = Pretended(problem, 2, disturbed=0, drift=0)
    measured = loop(problem, workers)
    single, *_ = measured.candidates
    assert measured.kept.ratio < 0.9
    assert single.given_up
    assert not measured.kept.given_up
    slow = [each for each in measured.candidates[1:] if each.ratio > 1.05 * measured.kept.ratio]
    assert slow
    assert all(each.given_up and len(each.runs) <= 2 for each in slow)
    assert all(len(each.runs) <= 4 for each in measured.candidates[1:])


@pytest.mark.parametrize("end", [FAILED, DIED])
def test_a_candidate_that_fails_costs_itself(problem, end):
    workers = Pretended(problem, 0, ends={2: end, 3: DIED} if end is DIED else {2: end})
    measured = loop(problem, workers)
    (failed,) = (each for each in measured.candidates if each.reason)
    assert failed.reason == end.reason
    assert np.array_equal(failed.devices, workers.runs[1])
    again = [np.array_equal(failed.devices, run) for run in workers.runs]
    assert sum(again) == (2 if end is DIED else 1)
    assert measured.kept is not None


def test_a_worker_that_dies_once_costs_a_run(problem):
    workers = Pretended(problem, 0, ends={2: DIED})
    measured = loop(problem, workers)
    assert np.array_equal(workers.runs[1], workers.runs[2])
    assert not any(each.reason for each in measured.candidates)


def test_an_interrupt_keeps_the_fastest_so_far(problem):
    workers = Pretended(problem, 0, disturbed=0, drift=0, ends={4: KeyboardInterrupt()})
    measured = loop(problem, workers)
    assert measured.placement.interrupted
    assert len(workers.runs) == 4
    assert [len(each.runs) for each in measured.candidates] == [1, 1, 1]
    fastest = min(map(workers.step_time, workers.runs[:3]))
    assert workers.step_time(measured.placement.devices) <= 1.01 * fastest


def test_processes_that_cannot_be_started_end_it_if_nothing_ran(problem):
    with pytest.raises(PlacetoError, match="cannot be started"):
        loop(problem, Pretended(problem, 0, ends={1: PlacetoError("cannot be started")}))
    late = loop(problem, Pretended(problem, 0, ends={3: PlacetoError("cannot be started")}))
    assert late.stopped == "nothing can be run any more: cannot be started"
    assert late.kept is not None


def test_the_number_of_runs_is_checked(problem):
    with pytest.raises(PlacetoError, match="runs is 3, expected a number from 4"):
        loop(problem, Pretended(problem), runs=3)
