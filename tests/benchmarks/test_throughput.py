"""The study of throughput: its problems, its tables by hand, and the page of its results."""

import pytest

from benchmarks.output import RESULTS
from benchmarks.throughput import (
    CLUSTERS,
    GRAPHS,
    SHAPES,
    SMALL,
    host_rows,
    large_rows,
    markdown,
    small_problems,
    small_rows,
)
from placeto.support.files import read_json


def test_small_problems_are_connected_and_of_few_groups():
    sizes = set()
    for name, problem in small_problems():
        shape, size, devices, ends, _ = name.split("-")
        assert (problem.num_groups, problem.num_devices) == (int(size), int(devices))
        assert bool(problem.arrays.multicast.all()) == (ends == "multicast")
        readers = set(problem.graph.edge_consumer.tolist())
        assert readers == set(range(1, problem.num_groups)), shape
        sizes.add(problem.num_groups)
    assert sizes == set(SMALL)


def test_only_proven_optima_are_counted():
    row = {"optimum": 2.0, "proven": True, "auto": 2.0, "annealing": 2.01}
    found = {
        "chain-8-2-ends-0": row,
        "chain-9-2-ends-0": row | {"annealing": 2.0, "auto": 2.02},
        "chain-9-2-ends-1": row | {"proven": False, "annealing": 4.0},
        "skips-9-2-ends-1": row,
    }
    chains, skips = small_rows(found)
    assert chains == ["chain", "3", "2", "1", "1", "0.50%"]
    assert skips == ["skips", "1", "1", "1", "0", "0.50%"]


def test_large_problems_are_judged_by_the_better_proof():
    row = {"solver": 80.2, "highs": 2.5, "proven": 1.0, "stages": 4.0, "auto": 2.0, "bound": 2.0}
    ((name, proven, *figures),) = large_rows({"one": row})
    assert (name, proven) == ("`one`", "2000.00 ms")
    assert figures == ["1.0000", "1.2500", "2.0000", "1.0000", "0.8000", "80"]


def test_bounds_on_hosts_are_over_the_work_shared_out():
    found = {
        f"{graph}, {cluster}": {"shared": 0.5, "bound": 0.5 + 0.25 * number}
        for graph in GRAPHS
        for number, cluster in enumerate(CLUSTERS)
    }
    first, *_ = host_rows(found)
    assert first == ["`inception_v3`", "1.000", "1.500"]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_is_of_the_results(shape):
    document = read_json(RESULTS / "throughput.json")
    page = (RESULTS / "throughput.md").read_text()
    assert page == markdown(document)
    assert sum(name.startswith(f"{shape}-") for name in document["small"]) == 24
