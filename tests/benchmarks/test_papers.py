import math

from benchmarks.one_core import SEARCHES
from benchmarks.papers import page, study
from benchmarks.papers.published import (
    FROM_ONE_DEVICE,
    TABLES,
    Column,
    Table,
)
from placeto.placers import PLACERS

PAIR = Table(
    "placeto-2019",
    "two",
    (Column("nmt", "k80x2", {"single": math.inf}),),
    ("single", *SEARCHES, FROM_ONE_DEVICE),
)


def run(method, step_time, trace=(), seed=0, **more):
    found = {"graph": "nmt", "cluster": "k80x2", "method": method, "seed": seed, "note": ""}
    numbers = {"step_time": step_time, "feasible": True, "lower_bound": 0.1, "budget_seconds": 1}
    return {**found, **numbers, "evaluations": 100, "trace": list(trace), **more}


RUNS = [
    run("single", 0.5),
    run("annealing", 0.2, [[1, 0, 0.2]]),
    run("hierarchical", 0.4),
    run("placeto", 0.24, [[1, 0, 0.35], [20, 1, 0.24]]),
    *(run("colocrl", t, [[1, 0, 0.5], [90, 1, t]], n) for n, t in enumerate((0.3, 0.31, 0.5))),
    *(
        run("placeto-2019", t, [[1, 0, 0.5], [30, 1, 0.3], [60, 1, t]], n)
        for n, t in enumerate((0.25, 0.26, 0.29))
    ),
    *(
        run(FROM_ONE_DEVICE, t, [[1, 0, 0.5], [45, 1, 0.3], [60, 1, t]], n)
        for n, t in enumerate((0.28, 0.29, 0.3))
    ),
]


def test_every_method_of_the_tables_is_a_placer():
    for each in TABLES:
        for method in each.methods:
            settings = study.settings_of(method)
            assert not settings or PLACERS[method.split()[0]].config.configured(settings)
            assert method.split()[0] in PLACERS
        for column in each.columns:
            assert set(column.seconds) <= set(each.methods)


def test_reductions_are_those_that_the_papers_print():
    """The speed-up of the learned placer over the best other method, from the same tables."""
    printed = {
        "colocrl": [0, 0, 23.5, 20.6, 0, 19.0],
        "hierarchical": [16.3, 0, 0, 60.6, 53.7, -4.9],
    }
    for each in TABLES[:2]:
        for column, percent in zip(each.columns, printed[each.key], strict=True):
            learned = column.seconds[each.key]
            other = min(time for method, time in column.seconds.items() if method != each.key)
            found = {other / learned - 1, 1 - learned / other}  # either way of saying it
            assert any(abs(100 * share - percent) < 3.1 for share in found), (column, found)


def test_placements_to_the_same_step_time():
    # Medians are 0.31 s and 0.26 s: 0.31 s is what both reach, the third seed of colocrl never.
    text = page.reached(PAIR, page.by_problem(RUNS))
    assert "| nmt, k80x2 | 0.31 | 45 | 90 | 1 | - | 20 | 30 | 2 |" in text
    assert "fewer on 1 of 1 problems, 2 times at best" in text
