"""Members of a family that Ray workers extract."""

import os
import signal
from functools import partial

import pytest

from placeto import PlacetoError
from placeto.extraction import workers
from placeto.extraction.families import make_family
from placeto.extraction.workers import extract_members_with_ray
from placeto.support.files import read_bytes
from placeto.zoo.families import Member

MEMBERS = [Member("cifar10", number, f"zoo:none?number={number}", "train") for number in range(5)]


def pretend(mark, number):
    """Extracts the number of a member; one dies of the second, the first time."""

    def extracted(member):
        if member.number == 4:
            raise PlacetoError(f"{member.reference}: no such model")
        if member.number == 1:
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return {f"{member.name}.json.gz": b"survived"}
            os.kill(os.getpid(), signal.SIGKILL)
        return {"beside": b"0", f"{member.name}.json.gz": bytes([member.number])}

    return extracted


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "extractor", partial(pretend, tmp_path / "mark"))
    (tmp_path / "family").mkdir()
    return tmp_path / "family"


@pytest.mark.usefixtures("ray")
def test_files_are_written_here_as_members_are_done(folder):
    made = []

    def done(member):
        assert (folder / f"{member.name}.json.gz").exists()
        made.append(member)

    extract_members_with_ray(MEMBERS[:4], folder, 2, done, address=None)
    assert sorted(member.number for member in made) == [0, 1, 2, 3]
    assert read_bytes(folder / f"{MEMBERS[1].name}.json.gz") == b"survived"
    assert read_bytes(folder / f"{MEMBERS[3].name}.json.gz") == b"\3"
    with pytest.raises(PlacetoError, match="no such model"):
        extract_members_with_ray(MEMBERS[4:], folder, 1, done, address=None)


def test_a_family_is_made_by_what_it_is_told_to(tmp_path):
    asked = []

    def extract_all(members, folder, workers, made):
        asked.append((len(members), folder, workers))
        for member in members:
            made(member)

    assert make_family("cifar10", tmp_path, 7, extract_all=extract_all) == 32
    assert asked == [(32, tmp_path, 7)]
