"""Processes that extract: what they are told, and what is left when they do not get on."""

import os
from pathlib import Path

import pytest

from placeto.extraction import workers
from placeto.extraction.workers import extract_members
from placeto.graph import load_graph
from placeto.zoo.families import Member, members
from tests.extraction.pretend_worker import (
    HANG,
    WRITE,
    WRITE_WHEN_OTHERS_HANG,
)
from tests.extraction.running import saved_run


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MODULE", "tests.extraction.pretend_worker")


def doing(*deeds: int) -> list[Member]:
    """Members of a family `f` at which a pretended worker does these things."""
    return [Member("f", deed, "", "train") for deed in deeds]


def extracted(folder: Path, *deeds: int, count: int = 1) -> list[str]:
    """The names of members in the order in which they were made."""
    names: list[str] = []
    extract_members(doing(*deeds), folder, count, lambda member: names.append(member.name))
    return names


def test_a_real_member_is_extracted(tmp_path: Path) -> None:
    # The one with the fewest ops.
    member = min(
        (each for each in members("nmt") if "layers=1&" in each.source),
        key=lambda each: int(each.source.partition("length=")[2].partition("&")[0]),
    )
    extract_members([member], tmp_path, 1, lambda made: None)
    path = tmp_path / f"{member.name}.json.gz"
    assert {each.name for each in tmp_path.iterdir()} == {
        path.name,
        f"{member.name}.graphdef.gz",
    }
    graph = load_graph(path)
    assert graph.name == member.name
    assert graph.meta["source"] == member.source
    assert graph.meta["family"] == {
        "name": "nmt",
        "number": member.number,
        "split": member.split,
    }
    assert 1500 < graph.num_ops < 8000
    _, graph_def = saved_run(path)
    assert {node.name for node in graph_def.node}.issuperset(graph.op_names)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_members_are_made_by_any_number_of_workers(
    tmp_path: Path, pretend: None, count: int
) -> None:
    members = [Member(f"f{number}", WRITE, "", "train") for number in range(5)]
    made: list[str] = []
    extract_members(members, tmp_path, count, lambda member: made.append(member.name))
    assert sorted(made) == sorted(member.name for member in members)
    assert len(list(tmp_path.iterdir())) == 5
    if count == 1:
        assert made == [member.name for member in members]


def test_interrupted_no_process_and_no_half_written_file_is_left(
    tmp_path: Path, pretend: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = []
    start = workers.subprocess.Popen

    def noted(*arguments, **options):  # type: ignore[no-untyped-def]
        processes.append(start(*arguments, **options))
        return processes[-1]

    def interrupt(member: Member) -> None:
        assert list(tmp_path.glob(".f_04*"))
        raise KeyboardInterrupt

    monkeypatch.setattr(workers.subprocess, "Popen", noted)
    with pytest.raises(KeyboardInterrupt):
        extract_members(doing(HANG, WRITE_WHEN_OTHERS_HANG), tmp_path, 2, interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["f_05.json.gz"]
    assert len(processes) == 2
    for process in processes:
        assert process.poll() is not None
        # A session of its own: Ctrl-C on the terminal is not for it.
        assert process.pid != os.getpgrp()
