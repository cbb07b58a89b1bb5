"""`placeto extract family:…`."""

from pathlib import Path

import pytest

from placeto import load_graph
from placeto.zoo.families import members
from placeto.zoo.folders import family_graphs


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PLACETO_CACHE", str(tmp_path / "cache"))


def test_a_family_goes_into_a_folder(placeto):
    result = placeto("extract", "family:layered", "-o", "layered", "--json")
    document = result.document
    assert (document["family"], document["output"], document["made"]) == ("layered", "layered", 32)
    assert document["members"][3] == {
        "family": "layered",
        "number": 3,
        "source": "family:layered?number=3",
        "split": members("layered")[3].split,
        "file": "layered/layered_03.json.gz",
    }
    assert load_graph("layered/layered_03.json.gz").name == "layered_03"
    Path("layered/layered_03.json.gz").unlink()
    again = placeto("extract", "family:layered", "-o", "layered", "--workers", "1", "--json")
    assert again.document["made"] == 1
    assert again.err.splitlines() == [
        "extract: 31 of 32 are there",
        "extract: 32 of 32: layered_03",
        "placeto: 1 graphs made; all 32 of family:layered are in layered",
    ]


def test_one_graph_of_a_synthetic_family(placeto):
    document = placeto("extract", "family:random?number=7", "-o", "g.json", "--json").document
    assert document["graph"] == "random_07"
    assert document["graph_def"] is None
    assert load_graph("g.json") == family_graphs("family:random")[7]
    assert "GraphDef" not in placeto("extract", "family:random?number=7", "-o", "g.json").err


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["family:cifar100"], "family:cifar100: no such family; families: "),
        (["family:random", "-o", "fork.json"], "fork.json: is a file; expected a folder"),
        (["family:random", "--workers", "0"], "--workers 0: expected at least 1"),
        (["family:random", "--workers", "two"], "workers"),
        (["family:random?number=7"], "missing from placeto extract: -o FILE"),
        (["family:random?number=7", "-o", "g.yaml"], "g.yaml: a graph file's name ends in .json"),
        (["family:random?number=32", "-o", "g.json"], "random has no graph 32"),
        (["family:random?number=" + "9" * 5000, "-o", "g.json"], "random has no graph 999"),
        (["family:random", "--name", "x"], "--name goes with one graph"),
        (["family:random", "-o", ""], "-o '': expected a folder"),
        (["zoo:nmt"], "missing from placeto extract: -o FILE"),
        (["zoo:nmt", "-o", "g.json", "--workers", "2"], "--workers goes with a whole family"),
    ],
)
def test_what_cannot_be_made_is_one_line(placeto, argv, complaint):
    result = placeto("extract", *argv)
    assert complaint in result.complaint
    assert len(result.err.splitlines()) == 1
    assert not Path("g.json").exists()


def test_what_others_made_is_not_replaced(placeto):
    own = Path("own")
    own.mkdir()
    (own / "random_05.json.gz").write_text("mine")
    assert (
        "random_05.json.gz: was not made"
        in placeto("extract", "family:random", "-o", "own").complaint
    )
    assert [path.name for path in own.iterdir()] == ["random_05.json.gz"]
    (own / "random_05.json.gz").unlink()
    assert placeto("extract", "family:random", "-o", "own").status == 0
    (own / "random_05.json.gz").unlink()
    (own / "random_05.json.gz").mkdir()
    line = placeto("extract", "family:random", "-o", "own").complaint
    assert "random_05.json.gz: cannot be replaced" in line
