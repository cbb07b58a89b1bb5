import pytest

from placeto.reports.rows import geometric_means


def row(graph, method, ratio, cluster="duo", feasible=True, wall_seconds=1.0):
    return {
        **{"graph": graph, "cluster": cluster, "method": method, "ratio": ratio},
        **{"step_time": 2.0, "feasible": feasible, "wall_seconds": wall_seconds},
    }


ROWS = [
    row("a", "single", 1.0),
    row("a", "etf", 0.5, wall_seconds=2.0),
    row("b", "single", 1.0),
    row("b", "etf", 0.125, wall_seconds=5.0),
    row("b", "heft", 0.3, feasible=False),
    row("c", "single", None, feasible=False),
    row("c", "etf", 0.01, feasible=False, wall_seconds=2.0),
]


def test_geometric_means_of_what_fits():
    means = {mean["method"]: mean for mean in geometric_means(ROWS)}
    assert means["etf"] == {
        "method": "etf",
        "ratio": pytest.approx(0.25),
        "wall_seconds": 3.0,
        "problems": 3,
        "infeasible": 1,
    }
    assert means["heft"]["ratio"] is None
    assert means["single"]["problems"] - means["single"]["infeasible"] == 2
