"""How many microbatches are tried, which number is taken, and why no more are."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, PlacetoError
from placeto.placers import microbatches
from placeto.placers.microbatches import doublings, try_microbatches
from placeto.placers.ordering import ordered
from tests.builders import make_cluster
from tests.placers.split_steps import SOURCE, seconds, split_step


@pytest.fixture
def tries(monkeypatch):
    def found(fixed, memory=10**9, extract=split_step, **options):
        monkeypatch.setattr(microbatches, "extract", partial(extract, fixed=fixed, **options))
        cluster = make_cluster(2, memory=memory)
        return try_microbatches(
            SOURCE, lambda graph: ordered(PlacementProblem(graph, cluster, "none")), "exact"
        )

    return found


@given(batch=st.integers(1, 5000))
def test_each_number_is_the_least_divisor_that_is_twice_the_one_before(batch):
    counts = doublings(batch)
    assert counts[0] == 1
    for before, count in zip(counts, [*counts[1:], batch + 1], strict=True):
        between = [each for each in range(2 * before, count) if batch % each == 0]
        assert batch % before == 0
        assert between == []


def test_it_ends_when_two_in_a_row_are_clearly_worse(tries):
    found = tries(fixed=0.6)
    # 33.2, 25.8, 23, 23.4 (which is not clearly worse), 27.2, 36.3 s.
    assert list(found.placements) == [1, 2, 4, 8, 16, 32]
    for count, placement in found.placements.items():
        assert placement.step_time == pytest.approx(seconds(count, 0.6))
    assert found.best is found.placements[4]
    assert found.extraction.graph is found.best.problem.graph
    assert found.stopped == "the last two are clearly worse"


def test_down_to_one_example_each(tries):
    found = tries(fixed=0.0)
    assert list(found.placements) == [1, 2, 4, 8, 16, 32, 64]
    assert found.best is found.placements[64]
    assert found.stopped == "64 is one example each"


def test_what_does_not_fit_is_never_the_best(tries):
    found = tries(fixed=10.0, memory=20, held=64)
    assert [each.feasible for each in found.placements.values()] == [False, False, True, True, True]
    assert found.placements[1].step_time < found.best.step_time
    assert found.best is found.placements[4]


def test_too_many_ops_and_too_long_to_extract_are_not_tried(tries, monkeypatch):
    monkeypatch.setattr(microbatches, "MOST_OPS", 10)
    found = tries(fixed=0.0)
    assert list(found.placements) == [1, 2, 4]
    assert found.stopped == "8 would have about 16 ops"
    monkeypatch.setattr(microbatches, "LONGEST_SECONDS", -1.0)
    assert list(tries(fixed=0.0, held=64, memory=20).placements) == [1]


def test_ctrl_c_leaves_what_was_found(tries):
    def interrupted(source, fixed, at):
        if f"microbatches={at}" in source:
            raise KeyboardInterrupt
        return split_step(source, fixed)

    found = tries(fixed=0.6, extract=interrupted, at=4)
    assert list(found.placements) == [1, 2]
    assert found.interrupted
    assert found.best is found.placements[2]
    with pytest.raises(KeyboardInterrupt):
        tries(fixed=0.6, extract=interrupted, at=1)


def test_an_unknown_batch_is_refused(tries):
    with pytest.raises(PlacetoError, match="does not say how many examples"):
        tries(fixed=0.0, meta={})
