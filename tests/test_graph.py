import copy
import gzip
import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import ComputationGraph, PlacetoError, load_graph, save_graph
from placeto.graph import from_document, to_document
from placeto.support.files import read_bytes, write_json
from tests.strategies import examples, graphs

VALID: dict[str, Any] = {
    "format": "placeto.graph",
    "version": 1,
    "name": "three",
    "meta": {"from": ["nowhere", 1, None]},
    "ops": {
        "name": ["a", "b", "c"],
        "type": ["Conv2D", "Relu", "Relu"],
        "param_bytes": [4, 0, 0],
        "temp_bytes": [0, 7, 0],
        "colocation": [-1, 0, 0],
        "flops": [1e9, 0, 0],
    },
    "op_seconds": {"k80": [1e-3, 2e-4, 0], "cpu": [5e-2, None, 1e-2]},
    "tensors": {"producer": [0, 1], "bytes": [1024, 0]},
    "edges": {"tensor": [0, 0, 1], "consumer": [1, 2, 2]},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(VALID)
    *parents, last = path.split(".")
    table = document
    for key in parents:
        table = table[key]
    if value is ...:
        del table[last]
    else:
        table[last] = value
    return document


def assert_one_line(message: str) -> None:
    assert message == " ".join(message.splitlines())


@given(graphs())
def test_document_there_and_back(graph: ComputationGraph) -> None:
    document = json.loads(json.dumps(to_document(graph), allow_nan=False))
    assert from_document(document, "here") == graph


@pytest.mark.parametrize("name", ["g.json", "g.json.gz"])
@pytest.mark.parametrize("source", ["inception_v3", "nmt"])
def test_file_round_trip_has_equal_bytes(tmp_path: Path, source: str, name: str) -> None:
    graph = load_graph(source)
    save_graph(graph, tmp_path / name)
    again = load_graph(tmp_path / name)
    assert again == graph
    save_graph(again, tmp_path / f"again-{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, f"again-{name}"])


def test_optional_columns() -> None:
    document = changed("meta", ...)
    for column in ("param_bytes", "temp_bytes", "colocation", "flops"):
        del document["ops"][column]
    graph = from_document(document, "here")
    assert graph.param_bytes.tolist() == graph.temp_bytes.tolist() == [0, 0, 0]
    assert graph.flops.tolist() == [0, 0, 0]
    assert graph.colocation.tolist() == [-1, -1, -1]
    assert graph.meta == {}


def pipelined(**columns: list[int]) -> dict[str, Any]:
    """Op 0 is in microbatch 0, op 1 its copy, op 2 an update."""
    document = copy.deepcopy(VALID)
    document["ops"] |= {"microbatch": [0, 1, -1], "copy_of": [-1, 0, -1], "phase": [0, 0, 2]}
    document["ops"] |= columns
    return document


def test_columns_of_pipelines_are_written_where_there_is_something_in_them() -> None:
    graph = from_document(pipelined(), "here")
    assert graph.num_microbatches == 2
    assert to_document(graph)["ops"].items() >= pipelined()["ops"].items()
    assert from_document(to_document(graph), "here") == graph
    plain = from_document(VALID, "here")
    assert plain.num_microbatches == 1
    assert to_document(plain)["ops"].keys() == VALID["ops"].keys()
    assert (plain.microbatch.tolist(), plain.copy_of.tolist()) == ([-1] * 3, [-1] * 3)
    assert plain.phase.tolist() == [0] * 3
    phase = from_document(changed("ops.phase", [0, 1, 2]), "here")
    assert from_document(to_document(phase), "here") == phase


def test_edges_are_sorted_and_merged() -> None:
    document = changed("edges", {"tensor": [1, 0, 0, 1], "consumer": [2, 2, 1, 2]})
    assert from_document(document, "here") == from_document(VALID, "here")


def test_equality_sees_every_field() -> None:
    graph = from_document(VALID, "here")
    others = [
        changed("name", "other"), changed("meta", {}), changed("ops.name", ["a", "b", "d"]),
        changed("ops.type", ["X", "Relu", "Relu"]), changed("ops.param_bytes", [5, 0, 0]),
        changed("ops.temp_bytes", [0, 0, 0]), changed("ops.colocation", [-1, -1, -1]),
        changed("ops.flops", [0, 0, 0]), changed("ops.phase", [0, 1, 0]),
        changed("ops.microbatch", [0, 0, 0]), changed("op_seconds.k80", [1e-3, 2e-4, 1]),
        changed("tensors.producer", [0, 0]), changed("tensors.bytes", [1024, 1]),
        changed("edges", {"tensor": [0, 1], "consumer": [1, 2]}),
    ]  # fmt: skip
    assert all(from_document(other, "here") != graph for other in others)
    assert graph != VALID


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, object])
def test_whole_numbers_become_int64(dtype: Any) -> None:
    graph = ComputationGraph("g", ["a", "b"], ["A"] * 2, {}, [], [], [], [],
                             param_bytes=np.array([0, 3], dtype=dtype))  # fmt: skip
    assert graph.param_bytes.dtype == np.int64
    assert graph.param_bytes.tolist() == [0, 3]


@given(graphs())
def test_topological_order(graph: ComputationGraph) -> None:
    g = nx.DiGraph()
    g.add_nodes_from(range(graph.num_ops))
    g.add_edges_from(zip(*(ends.tolist() for ends in graph.op_edges), strict=True))
    assert graph.topological_order.tolist() == list(nx.lexicographical_topological_sort(g))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed("format", "placeto.cluster"), "format is 'placeto.cluster', expected 'placeto.g"),
        (changed("version", 2), "version 2 of placeto.graph is later than this placeto reads (1)"),
        (changed("version", 0), "version is 0, expected 1 or more"),
        (changed("tensors.bytes", ...), "tensors: key 'bytes' is missing"),
        (changed("ops.name", ["a", 2, "c"]), "ops.name[1]: expected a string, found a whole num"),
        (changed("ops.name", ["a", "b", "a"]), "op name 'a' stands twice; names must be unique"),
        (changed("ops.name", []), "has no ops"),
        (changed("ops.type", ["A", "B"]), "ops.type has 2 values, expected 3, one per op"),
        (changed("op_seconds.k80", [1, -2.5, 1]), "op_seconds.k80[1] is -2.5, must not be neg"),
        (changed("op_seconds.k80", [1, 6e11, 6e11]), "op_seconds.k80 add up to 1.2e+12 s"),
        (changed("ops.param_bytes", [1, 1.5, 0]), "ops.param_bytes[1] is 1.5, expected a whole"),
        (changed("ops.param_bytes", [0, True, 0]), "ops.param_bytes[1]: expected a number, found"),
        (changed("ops.param_bytes", [2**61, 2**61, 2**61]), "bytes exceed 2**62 in all"),
        (changed("ops.colocation", [0, -2, 0]), "ops.colocation[1] is -2, must be at least -1"),
        (pipelined(phase=[0, 3, 0]), "ops.phase[1] is 3, but ids go from 0 to 2"),
        (pipelined(copy_of=[-1, 3, -1]), "ops.copy_of[1] is 3, but ids go from 0 to 2"),
        (pipelined(copy_of=[-1, 2, -1]), "op 1 is of microbatch 1, and op 2 of -1; expected an op"),
        (pipelined(copy_of=[1, -1, -1]), "ops.copy_of[0] is 1: op 0 is of microbatch 0"),
        (changed("tensors.producer", [0, 3]), "tensors.producer[1] is 3, but ids go from 0 to 2"),
        (changed("edges.consumer", [1, 2]), "edges.consumer has 2 values, expected 3, one per"),
        (changed("edges.consumer", [1, 0, 2]), "has a cycle: a -> a"),
    ],
)  # fmt: skip
def test_invalid_files(tmp_path: Path, document: dict[str, Any], message: str) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(document))
    with pytest.raises(PlacetoError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert_one_line(str(caught.value))


def test_what_unpacks_to_too_much_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 5000))
    assert read_bytes(path, most=5000) == b" " * 5000
    with pytest.raises(PlacetoError) as caught:
        read_bytes(path, most=4999)
    assert str(caught.value) == f"{path}: unpacks to more than 4.88 KiB, the most that is read"


def test_a_graph_knows_the_folder_of_its_file(tmp_path: Path, monkeypatch) -> None:
    graph = from_document(VALID, "here")
    save_graph(graph, tmp_path / "g.json")
    monkeypatch.chdir(tmp_path)
    assert load_graph("g.json").folder == tmp_path.resolve()
    assert graph.folder is None
    assert load_graph("g.json") == graph


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.integers(2**62, 2**70)
    | st.floats() | st.text(max_size=4) | st.just(10**400)
)  # fmt: skip
VALUES = SCALARS | st.lists(SCALARS, max_size=4) | st.dictionaries(st.text(max_size=3), SCALARS)


@examples(150)
@given(st.data())
def test_mutated_documents(data: st.DataObject) -> None:
    document = copy.deepcopy(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        table: Any = document
        while True:
            keys = list(table) if isinstance(table, dict) else list(range(len(table)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(table[key], dict | list) or not table[key]:
                break
            if data.draw(st.integers(0, 3)) == 0:
                break
            table = table[key]
        if data.draw(st.booleans()) and len(table) > 1:
            del table[key]
        else:
            table[key] = data.draw(VALUES)
    try:
        graph = from_document(document, "here")
    except PlacetoError as error:
        assert str(error).startswith("here: ")
        assert_one_line(str(error))
    else:
        assert from_document(to_document(graph), "here") == graph or "NaN" in json.dumps(document)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated")


@examples(100)
@given(compressed=st.booleans(), data=st.data())
def test_mutated_bytes(folder: Path, compressed: bool, data: st.DataObject) -> None:
    content = bytearray(json.dumps(VALID).encode())
    if compressed:
        content = bytearray(gzip.compress(content, mtime=0))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
    path = folder / ("g.json.gz" if compressed else "g.json")
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    try:
        load_graph(path)
    except PlacetoError as error:
        assert str(error).startswith(f"{path}: ")
        assert_one_line(str(error))


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_json(tmp_path / "g.json", {"a": 1})
    with pytest.raises(PlacetoError, match="cannot be written as JSON"):
        write_json(tmp_path / "g.json", {"a": object()})
    assert (tmp_path / "g.json").read_text() == '{"a":1}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["g.json"]
