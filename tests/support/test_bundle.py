from pathlib import Path

import pytest

from placeto import PlacetoError
from placeto.support.bundle import find, names


def test_names() -> None:
    assert {"inception_v3", "nmt"} <= set(names("graphs", (".json.gz", ".json")))
    assert "k80x4" in names("clusters", (".yaml",))
    assert names("clusters", (".yaml",)) == sorted(names("clusters", (".yaml",)))


def test_find(tmp_path: Path) -> None:
    assert find("clusters", (".yaml",), "k80x4").name == "k80x4.yaml"
    own = tmp_path / "mine.yaml"
    own.touch()
    assert find("clusters", (".yaml",), own) == own


@pytest.mark.parametrize("source", ["k80x44", "presets/k80x4", "../presets/k80x4", "k80x4.yml"])
def test_no_such_name(source: str) -> None:
    with pytest.raises(PlacetoError) as caught:
        find("clusters", (".yaml",), source)
    assert str(caught.value).startswith(f"{source}: no such file, and no bundled name; ")
    assert "bundled clusters: a100x2-v100x2-cpu, " in str(caught.value)
