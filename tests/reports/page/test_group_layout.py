import numpy as np
from hypothesis import assume, given

from placeto import PlacementProblem, simulate
from placeto.reports.page.group_layout import WIDTH, group_starts, lay_out
from tests.builders import make_cluster, make_graph
from tests.strategies import placed


@given(example=placed(max_ops=40))
def test_circles_lie_in_their_lanes_and_never_overlap(example):
    problem, devices = example
    schedule = simulate(problem, devices)
    assume(np.isfinite(schedule.step_time) and schedule.step_time > 0)
    layout = lay_out(problem, schedule)
    work = problem.group_seconds[np.arange(problem.num_groups), schedule.devices]
    assert sorted(layout.group.tolist()) == np.flatnonzero(work > 0).tolist()
    assert layout.hidden_groups == (work == 0).sum()
    assert (np.diff(layout.x) >= 0).all()
    assert ((layout.x >= 0) & (layout.x <= 1)).all()
    lane = schedule.devices[layout.group]
    assert (layout.y - layout.radius >= layout.lane_top[lane]).all()
    assert (layout.y + layout.radius <= layout.lane_top[lane + 1]).all()
    for a in range(len(lane)):
        for b in range(a):
            if lane[a] == lane[b]:
                apart = np.hypot(WIDTH * (layout.x[a] - layout.x[b]), layout.y[a] - layout.y[b])
                assert apart >= layout.radius[a] + layout.radius[b] - 1e-6


@given(example=placed(max_ops=30))
def test_lines_are_the_edges_of_the_group_graph(example):
    problem, devices = example
    schedule = simulate(problem, devices)
    assume(np.isfinite(schedule.step_time) and schedule.step_time > 0)
    layout = lay_out(problem, schedule)
    source, target = layout.group[layout.edge].T if len(layout.edge) else ([], [])
    drawn = set(zip(source, target, layout.edge_bytes, strict=True))
    own = set(layout.group.tolist())
    edges = zip(*problem.group_edges, strict=True)
    assert drawn == {edge for edge in edges if own.issuperset(edge[:2])}
    assert layout.hidden_edges == 0


def test_a_group_begins_where_a_tenth_of_its_work_is_done():
    # Group 0 reads a weight at once, and works from 10 s on; group 2 has no work, and its turn
    # comes after that.
    graph = make_graph(
        {"weight": 0.5, "other": 9.5, "work": 10.0, "none": 0.0},
        [("weight", 1, ["work"]), ("other", 1, ["work", "none"])],
    )
    problem = PlacementProblem(graph, make_cluster(1), np.array([0, 1, 0, 2]))
    assert group_starts(problem, simulate(problem, [0, 0, 0])).tolist() == [10.0, 0.5, 20.0]
