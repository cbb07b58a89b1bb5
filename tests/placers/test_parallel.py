"""Many searches at once find what they find one by one."""

import pytest

from placeto import PlacetoError
from placeto.distributed import ray_session
from placeto.envs import generator
from placeto.placers import place
from placeto.placers.parallel import Search, place_all
from tests.cli.conftest import folder, placeto  # noqa: F401

PROBLEMS = [generator.fork(), generator.diamond(), generator.chain()]
METHODS = ("single", "etf", "heft")


@pytest.fixture(scope="module")
def _ray():
    with ray_session(None, 2):
        yield


@pytest.mark.usefixtures("_ray")
def test_placements_are_those_of_place():
    searches = [Search(problem, method) for problem in PROBLEMS for method in METHODS]
    limited = {"max_evaluations": 50}
    searches.append(Search(PROBLEMS[1], "annealing", seed=3, settings=limited))
    found = dict(place_all(searches, workers=2))
    assert sorted(found) == [*range(10)]
    for number, search in enumerate(searches):
        alone = place(
            search.problem,
            search.method,
            search.budget_seconds,
            search.seed,
            settings=search.settings,
        )
        assert found[number] == alone
        assert found[number].problem is search.problem
        assert found[number].step_time == alone.step_time
        assert found[number].evaluations == alone.evaluations


@pytest.mark.usefixtures("_ray")
def test_compare_says_the_same_with_workers(placeto):  # noqa: F811
    argv = ("compare", "fork.json", "--cluster", "duo.yaml", "--grouping", "none", "--json")
    one_by_one = placeto(*argv, "--methods", "single,etf,heft")
    at_once = placeto(*argv, "--methods", "single,etf,heft", "--workers", "2")
    for result in (one_by_one, at_once):
        for row in result.document["rows"]:
            row.pop("wall_seconds")
    assert at_once.document["rows"] == one_by_one.document["rows"]


def test_nothing_to_find_needs_no_workers():
    assert list(place_all([], workers=2)) == []


@pytest.mark.parametrize(
    ("search", "workers", "says"),
    [
        (Search(PROBLEMS[0]), 0, "workers is 0, expected a whole number from 1"),
        (Search(PROBLEMS[0], "hefty"), 1, "hefty"),
    ],
)
def test_what_is_wrong_is_said_before_ray_is_started(search, workers, says):
    with pytest.raises(PlacetoError, match=says):
        list(place_all([search], workers))


def test_an_address_goes_with_workers(placeto):  # noqa: F811
    result = placeto("compare", "fork.json", "--cluster", "duo.yaml", "--ray-address", "auto")
    assert "--ray-address goes with workers; give --workers N, too" in result.complaint
