import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRST = """
from pathlib import Path
from placeto.bounds.joins import join_heads
from placeto.support import beside
from tests.support.test_beside import compiled
{before}
beside.compile_beside("placeto.cli.compiling:compile_all", ("groups", "bounds"), join_heads)
print(len(beside._running), *compiled())
beside.wait_for("groups")
print(*compiled())
beside.wait_for("bounds")
print(*compiled())
"""
FUNCTIONS = ("contraction.contract", "joins.join_heads")


def compiled() -> list[str]:
    """Those of two functions that are on disk."""
    kept = Path(os.environ["NUMBA_CACHE_DIR"])
    return [name for name in FUNCTIONS if any(kept.rglob(f"{name}-*.nbi"))]


def said(folder: Path, before: str = "", **environment: str) -> list[str]:
    shown = subprocess.run(
        [sys.executable, "-c", FIRST.format(before=before)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)} | environment,
    )
    assert shown.stderr == ""
    return shown.stdout.splitlines()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: nothing is beside it")
def test_stages_are_compiled_where_they_are_waited_for(tmp_path: Path) -> None:
    groups, bounds = FUNCTIONS
    assert said(tmp_path) == ["1", groups, f"{groups} {bounds}"]
    assert said(tmp_path)[0] == f"0 {groups} {bounds}", "what is compiled is not compiled again"


def test_nothing_is_started_on_one_core_or_in_a_process_that_was_started(tmp_path: Path) -> None:
    assert said(tmp_path, "import os; os.sched_setaffinity(0, {0})") == ["0", "", ""]
    assert said(tmp_path, PLACETO_COMPILES_BESIDE="1") == ["0", "", ""]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: nothing is beside it")
def test_a_process_that_fails_is_waited_for_no_longer(tmp_path: Path) -> None:
    before = "import sys; beside.sys = type(sys)('sys'); beside.sys.executable = '/bin/false'"
    assert said(tmp_path, before) == ["1", "", ""]
