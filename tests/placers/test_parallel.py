"""Many searches at once find what they find one by one."""

import pytest

from placeto.envs import generator
from placeto.placers import place
from placeto.placers.parallel import Search, place_all
from tests.cli.conftest import folder, placeto  # noqa: F401

PROBLEMS = [generator.fork(), generator.diamond(), generator.chain()]
METHODS = ("single", "etf", "heft")


@pytest.mark.usefixtures("ray")
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


@pytest.mark.usefixtures("ray")
def test_compare_says_the_same_with_workers(placeto):  # noqa: F811
    argv = ("compare", "fork.json", "--cluster", "duo.yaml", "--grouping", "none", "--json")
    one_by_one = placeto(*argv, "--methods", "single,etf,heft")
    at_once = placeto(*argv, "--methods", "single,etf,heft", "--workers", "2")
    both = [result.document["rows"] for result in (one_by_one, at_once)]
    for rows in both:
        assert [row["method"] for row in rows] == ["single", "etf", "heft"]
        for row in rows:
            row.pop("wall_seconds")
    assert both[0] == both[1]


@pytest.mark.usefixtures("ray")
def test_what_is_printed_between_results_is_output(capsys):
    for number, _ in place_all([Search(PROBLEMS[0], "etf")], workers=1):
        print(f"search {number} is over")
    assert capsys.readouterr().out == "search 0 is over\n"
