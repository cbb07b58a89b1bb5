"""The saved GraphDef runs by itself, and holds the ops of the graph file."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placeto.extraction import extract
from placeto.extraction.bundled import PIPELINED, SOURCES
from placeto.graph import load_graph
from tests.extraction.running import STEPS, losses, saved_run


@pytest.mark.parametrize("optimize", [True, False])
def test_training_from_the_graph_def_lowers_the_loss(tmp_path: Path, optimize: bool) -> None:
    path = tmp_path / "tiny.json.gz"
    beside = extract(f"{STEPS}:tiny?batch=4&learning_rate=0.05", optimize=optimize).save(path)
    assert beside == tmp_path / "tiny.graphdef.gz"
    run, graph_def = saved_run(path)
    placed = [n.name for n in graph_def.node if n.name.split("/")[0] != run["initializer"]]
    assert placed == list(load_graph(path).op_names)
    first, *_, last = losses(path, 20, classes=5)
    assert last < 0.5 * first


def test_initializers_store_no_values(tmp_path: Path) -> None:
    extraction = extract(f"{STEPS}:tiny?filters=512")
    assert extraction.graph.param_bytes.sum() > 700_000
    assert extraction.graph_def.ByteSize() < 60_000
    path = tmp_path / "wide.json.gz"
    extraction.save(path)
    assert losses(path, 1, classes=5)[0] == pytest.approx(1.6, abs=1.5)


def test_variables_that_only_the_trace_holds(tmp_path: Path) -> None:
    path = tmp_path / "regression.json.gz"
    extract(f"{STEPS}:regression?rows=5").save(path)
    first, *_, last = losses(path, 30, classes=2)
    assert last < first
    assert load_graph(path).meta["run"]["inputs"][0]["shape"] == [5, 3]


def test_the_same_reference_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    reference = f"{STEPS}:translator?batch=2&optimizer=adam"
    here, there = (tmp_path / name / "graph.json.gz" for name in ("here", "there"))
    here.parent.mkdir()
    there.parent.mkdir()
    extract(reference).save(here)
    code = f"from placeto.extraction import extract; extract({reference!r}).save({str(there)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        capture_output=True,
    )
    assert done.stdout == done.stderr == b""
    files = [{p.name: p.read_bytes() for p in path.parent.iterdir()} for path in (here, there)]
    assert len(files[0]) == 2
    assert files[0] == files[1]


@pytest.mark.parametrize("name", PIPELINED)
def test_bundled_pipelines_are_of_eight_microbatches(name: str) -> None:
    graph = load_graph(name)
    assert (graph.name, graph.num_microbatches) == (name, 8)
    assert graph.meta["source"] == PIPELINED[name]
    assert graph.meta["warnings"] == []


@pytest.mark.parametrize("name", SOURCES)
def test_bundled_graphs_are_whole(name: str) -> None:
    import placeto

    folder = Path(placeto.__file__).parent / "data" / "graphs"
    run, graph_def = saved_run(folder / f"{name}.json.gz")
    graph = load_graph(name)
    nodes = {node.name for node in graph_def.node}
    assert nodes.issuperset(graph.op_names)
    assert all(each.split(":")[0] in nodes for each in [*run["fetches"], *run["targets"]])
    assert graph.name == name
    assert graph.meta["source"] == SOURCES[name]
    assert graph.meta["warnings"] == []
    document = json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))
    assert document["format"] == "placeto.graph"
