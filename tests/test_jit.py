import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placeto import jit

CALLED = "from numba import njit\n@njit(cache=True)\ndef called():\n    return {}\n"
CALLING = """
from numba import njit
from package.called import called
@njit(cache=True)
def calling():
    return called()
"""
PACKAGE = """
from pathlib import Path
from placeto.jit import drop_stale_kernels
drop_stale_kernels(Path(__file__).parent)
"""


def result(folder: Path) -> int:
    code = "from package.calling import calling; print(calling())"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return int(shown.stdout)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_changed_callee_is_compiled_anew(tmp_path: Path, guarded: bool) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE if guarded else "")
    (package / "calling.py").write_text(CALLING)
    (package / "called.py").write_text(CALLED.format(1))
    assert result(tmp_path) == 1
    kept = sorted((package / "__pycache__").glob("calling.*.nbc"))
    assert len(kept) == 1
    assert result(tmp_path) == 1
    assert sorted((package / "__pycache__").glob("calling.*.nbc")) == kept
    (package / "called.py").write_text(CALLED.format(2))
    later = time.time() + 10
    os.utime(package / "called.py", (later, later))
    # Without the guard numba still answers 1; should that change, the guard can go.
    assert result(tmp_path) == (2 if guarded else 1)


def test_kernels_are_dropped_where_what_they_call_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    calling, called, other = (tmp_path / name for name in ("calling", "called", "other"))
    for folder in (calling, called, other):
        (folder / "__pycache__").mkdir(parents=True)
        (folder / "code.py").write_text("")
    jit.drop_stale_kernels(calling, "called")
    kept = calling / "__pycache__" / "code.nbc"
    kept.touch()
    (other / "code.py").write_text("# changed")
    jit.drop_stale_kernels(calling, "called")
    assert kept.exists()
    (called / "code.py").write_text("# changed")
    jit.drop_stale_kernels(calling, "called")
    assert not kept.exists()
