"""`placeto compare --strategies`."""

import pytest

from placeto import Cluster, Device, save_cluster, save_graph
from placeto.extraction import extract

SOURCE = "tests.extraction.pytorch.models:deep?batch=64&microbatches=4&loss=mse"


@pytest.fixture
def compare(placeto):
    save_graph(extract(SOURCE).graph, "m.json.gz")
    return lambda *argv: placeto("compare", "m.json.gz", "--cluster", "k80x2", *argv)


def test_all_strategies_and_what_to_do(compare):
    found = compare("--strategies", "all", "--json", "-o", "rows.json")
    assert found.status == 0
    rows = {row["strategy"]: row for row in found.document["rows"]}
    assert list(rows) == ["single", "naive", "pipeline", "data-parallel"]
    assert rows["single"]["speedup"] == 1
    assert rows["single"]["examples_per_second"] == pytest.approx(64 / rows["single"]["step_time"])
    assert rows["pipeline"]["memory_limit"] == [12 * 2**30] * len(rows["pipeline"]["devices"])
    (verdict,) = found.document["verdicts"]
    assert verdict["graph"] == "deep"
    assert verdict["verdict"] in found.err
    said = "op times of deep on k80 are estimates; placeto calibrate --torch measures them"
    assert found.err.count(said) == 1


def test_a_table_for_a_person(compare):
    found = compare("--strategies", "single,pipeline")
    assert found.status == 0
    assert "times one" in found.out
    assert "split" in found.err


def test_what_does_not_fit_is_marked(placeto, compare):
    small = Cluster("small", (Device("cuda:0", "k80", 2**20),))
    save_cluster(small, "small.yaml")
    found = placeto("compare", "m.json.gz", "--cluster", "small.yaml", "--strategies", "single")
    assert "OOM" in found.out
    assert "nothing fits" in found.err


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("--strategies", "tensor"), "no strategy 'tensor'; strategies: single, naive"),
        (("--strategies", "all", "--methods", "etf"), "--methods does not go with --strategies"),
        (("--strategies", "all", "--order", "1f1b"), "--order does not go with --strategies"),
    ],
)
def test_what_is_refused(compare, argv, complaint):
    assert complaint in compare(*argv).complaint


def test_graphs_of_tensorflow_are_refused(placeto):
    found = placeto("compare", "nmt", "--cluster", "k80x2", "--strategies", "single")
    assert "does not say which modules its ops are of" in found.complaint
