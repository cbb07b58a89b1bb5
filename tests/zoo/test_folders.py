"""Folders of graphs of a family, found, checked and loaded."""

from pathlib import Path

import pytest

from placeto import load_graph, save_graph
from placeto.support.errors import PlacetoError
from placeto.zoo.families import members
from placeto.zoo.folders import (
    INDEX,
    cache_folder,
    family_graphs,
    family_of,
    graph_path,
    load_graphs,
    resolve,
    synthetic_member,
    write_index,
)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder that is the cache."""
    monkeypatch.setenv("PLACETO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def filled(folder: Path, family: str = "layered") -> Path:
    """The folder with all graphs of a family."""
    folder.mkdir(parents=True)
    for member in members(family):
        save_graph(synthetic_member(member), graph_path(folder, member))
    write_index(folder, family)
    return folder


@pytest.mark.parametrize("split", ["train", "validation", "test", None])
def test_a_split_of_a_folder_and_of_the_cache(cache: Path, split: str | None) -> None:
    folder = filled(cache_folder("layered"))
    wanted = [each for each in members("layered") if split in (None, each.split)]
    assert folder == cache / "families" / "layered"
    assert resolve("family:layered", split) == [graph_path(folder, each) for each in wanted]
    assert resolve(folder, split) == resolve(str(folder), split) == resolve("family:layered", split)
    graphs = family_graphs(folder, split)
    assert [graph.name for graph in graphs] == [each.name for each in wanted]
    assert {graph.meta["family"]["split"] for graph in graphs} == {each.split for each in wanted}
    assert family_of(folder) == "layered"


def test_synthetic_graphs_need_no_folder(cache: Path) -> None:
    graphs = family_graphs("family:random", "test")
    assert [graph.name for graph in graphs] == [
        each.name for each in members("random") if each.split == "test"
    ]
    assert not cache.exists()


def test_missing_graphs_are_counted_and_the_command_named(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(PlacetoError, match=r"8 of 8 .* by: placeto extract family:nmt$"):
        resolve("family:nmt", "test")
    folder = filled(tmp_path / "mine")
    test = next(each for each in members("layered") if each.split == "test")
    graph_path(folder, test).unlink()
    with pytest.raises(PlacetoError, match=rf"1 of 8 .*extract family:layered -o {folder}$"):
        resolve(folder, "test")
    assert len(resolve(folder, "train")) == 20


def test_folders_and_splits_that_cannot_be_used(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(PlacetoError, match=r"holds no family\.json; give family:NAME, or a folder"):
        resolve(tmp_path)
    with pytest.raises(PlacetoError, match="no split 'trian'; splits: train, validation, test"):
        resolve("family:nmt", "trian")
    (tmp_path / INDEX).write_text('{"format": "placeto.family", "version": 1}')
    with pytest.raises(PlacetoError, match="'family' is missing"):
        resolve(tmp_path)
    (tmp_path / INDEX).write_text('{"format": "placeto.graph", "version": 1}')
    with pytest.raises(PlacetoError, match=r"expected 'placeto\.family'"):
        resolve(tmp_path)


def test_families_bundled_graphs_and_files_in_one_list(cache: Path, tmp_path: Path) -> None:
    folder = filled(tmp_path / "mine")
    file = str(graph_path(folder, members("layered")[3]))
    sources = ["nmt_small", "family:random", str(folder), file, "nmt_small"]
    names = [graph.name for graph in load_graphs(sources, "validation")]
    assert names[0] == "nmt_small"
    assert names[1:5] == [graph.name for graph in family_graphs("family:random", "validation")]
    assert names[5:9] == [graph.name for graph in family_graphs(folder, "validation")]
    assert names[9:] == [load_graph(file).name]
