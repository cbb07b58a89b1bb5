"""Families made into folders: only what is not there, and nothing that is not theirs."""

from pathlib import Path

import pytest

from placeto.extraction import families
from placeto.extraction.families import is_whole, make_family
from placeto.extraction.result import Extraction
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json, write_bytes, write_json
from placeto.zoo.families import Member, members
from placeto.zoo.folders import INDEX, family_graphs, graph_path, synthetic_member


class GraphDef:
    """Stands for TensorFlow's."""

    def SerializeToString(self, deterministic):  # type: ignore[no-untyped-def]  # noqa: N802
        return b"a graph"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of members that were extracted; instead of that a small graph is written."""
    names: list[str] = []

    def extract_members(graphs, folder, workers, done):  # type: ignore[no-untyped-def]
        for member in graphs:
            graph = synthetic_member(Member("layered", 1, member.source, member.split))
            graph.meta["run"] = {}
            Extraction(graph, GraphDef()).save(graph_path(folder, member))
            names.append(member.name)
            done(member)

    monkeypatch.setattr(families, "extract_members", extract_members)
    return names


def test_a_synthetic_family_is_made_whole(tmp_path: Path) -> None:
    lines: list[str] = []
    folder = tmp_path / "deep" / "layered"
    assert make_family("layered", folder, progress=lines.append) == 32
    assert lines[0] == "1 of 32: layered_00"
    assert lines[-1] == "32 of 32: layered_31"
    assert len(list(folder.iterdir())) == 33
    assert family_graphs(folder) == family_graphs("family:layered")
    assert make_family("layered", folder, progress=lines.append) == 0
    assert lines[-1] == "32 of 32 are there"


def test_only_what_is_not_whole_is_made(tmp_path: Path, made: list[str]) -> None:
    assert make_family("nmt", tmp_path) == len(made) == 32
    made.clear()
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.gz")}
    assert make_family("nmt", tmp_path) == len(made) == 0
    (tmp_path / "nmt_03.json.gz").unlink()
    (tmp_path / "nmt_05.graphdef.gz").unlink()
    cut = (tmp_path / "nmt_09.json.gz").read_bytes()
    (tmp_path / "nmt_09.json.gz").write_bytes(cut[: len(cut) // 2])
    write_bytes(tmp_path / "nmt_11.graphdef.gz", b"another graph")
    document = read_json(tmp_path / "nmt_20.json.gz")
    document["meta"]["source"] = "zoo:nmt?layers=99"
    write_json(tmp_path / "nmt_20.json.gz", document)
    document["meta"] = []
    write_json(tmp_path / "nmt_21.json.gz", document)
    assert make_family("nmt", tmp_path) == 6
    assert made == ["nmt_03", "nmt_05", "nmt_09", "nmt_11", "nmt_20", "nmt_21"]
    assert all(is_whole(member, tmp_path) for member in members("nmt"))
    kept = {path.name for path in tmp_path.glob("*.gz") if path.name.split(".")[0] not in made}
    assert len(kept) == 52
    assert all((tmp_path / name).stat().st_mtime_ns == times[name] for name in kept)


def test_folders_that_cannot_be_used(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PlacetoError, match=r"file: is a file; expected a folder for family:nmt$"):
        make_family("nmt", tmp_path / "file")
    with pytest.raises(PlacetoError, match="cannot be made: Not a directory"):
        make_family("nmt", tmp_path / "file" / "under")
    make_family("layered", tmp_path / "layered")
    with pytest.raises(PlacetoError, match="holds the graphs of family:layered; give family:nmt"):
        make_family("nmt", tmp_path / "layered")
    (tmp_path / "layered" / INDEX).write_text("{")
    with pytest.raises(PlacetoError, match=r"family\.json: not valid JSON"):
        make_family("layered", tmp_path / "layered")
    with pytest.raises(PlacetoError, match="--workers 0: expected at least 1"):
        make_family("layered", tmp_path / "other", 0)
    assert not (tmp_path / "other").exists()
    assert made == []
