"""Finding the GraphDef of a graph."""

from dataclasses import replace

import pytest

from placeto import PlacetoError
from placeto.measurement.runnable import find_runnable
from tests.builders import make_graph


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PLACETO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graph_defs"


def test_beside_its_file(saved):
    step = saved("two_layers")
    found = find_runnable(step.graph)
    assert found.path == step.path.parent / step.graph.meta["run"]["graph_def"]
    assert found.fetches == ("Mean:0",)
    assert found.targets == ("AssignSubVariableOp", "AssignSubVariableOp_1")


def test_made_again_where_what_is_kept_is_damaged_and_then_kept(saved, cache):
    graph = replace(saved("two_layers").graph, folder=None)
    path = cache / f"{graph.meta['run']['sha256']}.graphdef.gz"
    cache.mkdir(parents=True)
    path.write_bytes(saved("two_layers").runnable.path.read_bytes()[:50])
    first = find_runnable(graph)
    assert first.path == path
    assert path.read_bytes() == saved("two_layers").runnable.path.read_bytes()
    when = path.stat().st_mtime_ns
    assert find_runnable(graph) == first
    assert path.stat().st_mtime_ns == when


def test_a_source_that_is_not_there_any_more(saved):
    graph = saved("two_layers").graph
    run = graph.meta["run"] | {"sha256": "0" * 64}
    meta = {**graph.meta, "source": "nowhere:step", "run": run}
    gone = replace(graph, meta=meta, folder=None)
    with pytest.raises(
        PlacetoError, match="cannot be made again: nowhere:step: no module"
    ) as error:
        find_runnable(gone)
    assert "\n" not in str(error.value)


def test_graphs_that_cannot_be_run():
    graph = make_graph({"a": 1.0})
    with pytest.raises(PlacetoError, match="make it with placeto extract"):
        find_runnable(graph)
    run = {"sha256": "0" * 64, "fetches": ["a:0"], "targets": [], "initializer": "b"}
    with pytest.raises(PlacetoError, match="not beside it, and it names no source"):
        find_runnable(replace(graph, meta={"run": run}))
    del run["targets"]
    with pytest.raises(PlacetoError, match="no usable 'targets'"):
        find_runnable(replace(graph, meta={"run": run}))
