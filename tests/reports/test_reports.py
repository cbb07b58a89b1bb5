from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from rich.console import Console

from placeto import PlacementProblem, place
from placeto.reports.rows import baseline, device_rows, placement_row, ratio
from placeto.reports.summary import fastest_kind, graph_summary, groups_summary
from placeto.reports.tables import (
    compare_table,
    format_flops,
    format_peak,
    format_ratio,
    format_share,
    format_time,
    placement_table,
)
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import problems


@given(problem=problems(max_ops=20))
def test_the_groups_of_a_summary_are_those_of_the_problem(problem):
    graph = problem.graph
    summary = groups_summary(graph, problem.op_group, "fast")
    groups = [set(np.flatnonzero(problem.op_group == g)) for g in range(problem.num_groups)]
    assert summary["num_groups"] == len(groups)
    assert summary["largest_ops"] == max(map(len, groups))
    cut = 0
    for tensor, size in enumerate(graph.tensor_bytes.tolist()):
        home = problem.op_group[graph.tensor_producer[tensor]]
        readers = graph.edge_consumer[graph.edge_tensor == tensor]
        cut += size * len({int(problem.op_group[op]) for op in readers} - {int(home)})
    assert summary["cut_bytes"] == cut
    time = [sum(graph.op_seconds["fast"][op] for op in ops) for ops in groups]
    if sum(time) > 0:
        assert summary["largest_time_share"] == pytest.approx(max(time) / sum(time))
        assert summary["time_imbalance"] == pytest.approx(max(time) * len(time) / sum(time))


@given(problem=problems(max_ops=20))
def test_devices_add_up_to_the_problem(problem):
    rows = device_rows(place(problem, "random"))
    assert sum(row["groups"] for row in rows) == problem.num_groups
    assert sum(row["ops"] for row in rows) == problem.graph.num_ops
    assert [row["device"] for row in rows] == [d.name for d in problem.cluster.devices]


@given(problem=problems(max_ops=20))
def test_the_single_row_is_its_own_measure(problem):
    base = baseline(problem)
    row = placement_row(base.single, base, "none")
    assert row["ratio"] in (1.0, None)
    assert row["step_time"] == row["single_device_step_time"]
    assert row["lower_bound"] <= row["step_time"] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("step_time", "reference", "expected"),
    [(1.0, 2.0, 0.5), (0.0, 0.0, None), (np.inf, 1.0, None), (1.0, np.inf, None)],
)
def test_ratios_that_are_no_number_are_null(step_time, reference, expected):
    assert ratio(step_time, reference) == expected


def test_the_fastest_kind_is_the_one_that_runs_most_and_then_the_fastest():
    graph = make_graph({"a": 1.0, "b": 1.0})
    columns = {
        "slow": np.array([5.0, 5.0]),
        "fast": np.array([1.0, 2.0]),
        "picky": np.array([0.1, np.inf]),
    }
    graph = replace(graph, op_seconds=columns)
    assert fastest_kind(graph, ("slow", "fast", "picky")) == "fast"
    assert fastest_kind(graph, ("slow", "picky")) == "slow"
    assert fastest_kind(graph, ("unknown",)) is None


def test_op_types_are_ranked_by_time_and_cut_at_ten():
    graph = make_graph({f"op{op}": float(op) for op in range(12)})
    graph = replace(graph, op_types=[f"T{op}" for op in range(12)])
    types = graph_summary(graph, "k")["types"]
    assert [row["type"] for row in types] == [f"T{op}" for op in range(11, 1, -1)]
    assert types[0]["share"] == 11 / 66


def test_peak_memory_is_that_of_the_device_nearest_to_its_limit():
    assert format_peak([2**30, 600 * 2**20], [2**34, 2**30]) == "600 MiB of 1 GiB"
    assert format_peak([0, 0], [0, 0]) == "0 B of 0 B"
    assert format_peak([0, 1], [8, 0]) == "1 B of 0 B"


def test_nulls_are_dashes_and_numbers_have_units():
    assert format_time(None) == format_ratio(None) == format_share(None) == "-"
    assert format_time(0.0123) == "12.3 ms"
    assert format_share(0.1234) == "12.3%"
    assert format_flops(1.5e12) == "1.5 TFLOP"
    assert format_flops(12) == "12 FLOP"


def rendered(table, width=100) -> str:
    console = Console(width=width, color_system=None, markup=False)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_a_table_marks_what_does_not_fit_and_why():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 6, "b": 6})
    problem = make_problem(graph, make_cluster(2, memory=6))
    base = baseline(problem)
    rows = [placement_row(place(problem, method), base, "none") for method in ("single", "etf")]
    single, etf = (
        line
        for line in rendered(compare_table(rows)).splitlines()
        if line.split()[:1] in (["single"], ["etf"])
    )
    assert "OOM" in single
    assert "yes" in etf
    assert "12 B of 6 B" in single
    caption = " ".join(rendered(compare_table(rows)).split())
    assert "2 s, the best single device if it had the memory" in caption


def test_a_placement_says_which_part_found_it_and_where_one_device_is_enough():
    # A chain whose tensors take longer than its ops: no second device helps.
    chain = make_graph({"a": 1.0, "b": 1.0}, [("a", 9, ["b"])])
    problem = make_problem(chain, make_cluster(2))
    placement = replace(place(problem, "etf"), method="auto", found_by="etf")
    page = rendered(placement_table(placement_row(placement, baseline(problem), "none")))
    assert "one device is enough: d0" in page
    assert "by etf in " in page

    # Which is no answer where nothing else was tried.
    page = rendered(placement_table(placement_row(place(problem, "single"), baseline(problem), "")))
    assert "one device is enough" not in page

    apart = make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(2))
    page = rendered(placement_table(placement_row(place(apart, "etf"), baseline(apart), "none")))
    assert "one device is enough" not in page
    assert "by etf" not in page


def test_the_best_that_fits_stands_out():
    graph = make_graph({"a": 1.0, "b": 1.0})
    problem = PlacementProblem(graph, make_cluster(2), "none")
    base = baseline(problem)
    rows = [placement_row(place(problem, method), base, "none") for method in ("single", "etf")]
    assert [row.style for row in compare_table(rows).rows] == [None, "bold"]
