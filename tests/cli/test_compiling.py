import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from placeto.cli import compiling
from placeto.cli.compiling import compiling_beside

FIRST = """
from pathlib import Path
from placeto.cli.compiling import compiling_beside
kept = Path({folder!r})
with compiling_beside():
    print(len(list(kept.rglob("*.nbi"))))
print(len(list(kept.rglob("joins.join_heads-*.nbi"))))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: nothing is beside it")
def test_a_first_command_finds_the_bounds_compiled_at_its_end(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", FIRST.format(folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert shown.stderr == ""
    assert shown.stdout.split() == ["0", "1"]


def test_nothing_is_started_where_it_is_compiled_or_on_one_core(monkeypatch, tmp_path) -> None:
    def refuse(*arguments, **options):
        raise AssertionError("started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    index = tmp_path / "joins.join_heads-7.nbi"
    kept = SimpleNamespace(
        py_func=compiling.join_heads.py_func, stats=SimpleNamespace(cache_path=str(tmp_path))
    )
    monkeypatch.setattr(compiling, "join_heads", kept)
    with pytest.raises(AssertionError, match="started"), compiling_beside():
        pass
    index.touch()
    with compiling_beside():
        pass
    index.unlink()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with compiling_beside():
        pass
