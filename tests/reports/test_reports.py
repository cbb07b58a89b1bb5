from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from placeto import PlacementProblem, place
from placeto.reports.rows import baseline, device_rows, pipeline_row, placement_row, ratio
from placeto.reports.summary import groups_summary
from placeto.reports.tables import compare_table, placement_table
from tests.builders import make_cluster, make_graph, make_pipelined, make_problem
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


def test_a_step_of_several_microbatches_is_a_pipeline():
    # On one device there is no bubble, and whatever is ready first goes first: all go forward.
    single = place(make_pipelined(), "single")
    row = {"microbatches": 4, "bubble": 0.0, "alive_microbatches": [4, 0]}
    assert pipeline_row(single) == row
    assert placement_row(single, baseline(single.problem), "none")["pipeline"] == row
    assert pipeline_row(replace(single, step_time=np.inf)) is None
    assert (
        pipeline_row(place(make_problem(make_graph({"a": 1.0}), make_cluster(2)), "single")) is None
    )


@pytest.mark.parametrize(
    ("step_time", "reference", "expected"),
    [(1.0, 2.0, 0.5), (0.0, 0.0, None), (np.inf, 1.0, None), (1.0, np.inf, None)],
)
def test_ratios_that_are_no_number_are_null(step_time, reference, expected):
    assert ratio(step_time, reference) == expected


@pytest.mark.parametrize(
    ("meta", "rate"),
    [({"batch": 6}, 3.0), ({}, None), ({"batch": True}, None), ({"batch": 0}, None),
     ({"batch": "6"}, None)],
)  # fmt: skip
def test_examples_a_second_where_the_graph_knows_its_batch(meta, rate):
    graph = replace(make_graph({"a": 2.0}), meta=meta)
    placement = place(PlacementProblem(graph, make_cluster(2)), "single")
    base = baseline(placement.problem)
    assert placement_row(placement, base, "auto")["examples_per_second"] == rate
    headers = [column.header for column in compare_table([placement], base).columns]
    assert ("ex/s" in headers) == (rate is not None)
    told = list(placement_table(placement, base).columns[0].cells)
    assert ("examples" in told) == (rate is not None)


def test_the_bound_is_of_the_order_that_a_placement_has(monkeypatch):
    problem = make_pipelined()
    base = baseline(problem)
    ranked = replace(problem, grouping=problem.op_group, order="gpipe")
    monkeypatch.setattr("placeto.reports.rows.lower_bound", lambda each: len(str(each.order)))
    assert replace(base, ordered=ranked).lower_bound == len("gpipe")
    assert replace(base).lower_bound == len("fifo")
