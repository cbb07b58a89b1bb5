import os
import subprocess
import sys
from pathlib import Path

from placeto.cli.compiling import compile_all

FIRST = """
import os
from placeto.bounds.heads import raise_by_joins
from placeto.support import beside
from tests.support.test_beside import compiled
os.sched_getaffinity = lambda _: range({cores})
{before}
beside.compile_beside("placeto.cli.compiling:compile_all", ("groups", "bounds"), raise_by_joins)
print(len(beside._running), *compiled())
beside.wait_for("groups")
print(*compiled())
beside.wait_for("bounds")
print(*compiled())
"""
FUNCTIONS = ("contraction._contract", "heads.raise_by_joins")


def compiled() -> list[str]:
    """Those of two functions that are on disk."""
    kept = Path(os.environ["NUMBA_CACHE_DIR"])
    return [name for name in FUNCTIONS if any(kept.rglob(f"{name}-*.nbi"))]


def said(folder: Path, before: str = "", cores: int = 2, **environment: str) -> list[str]:
    shown = subprocess.run(
        [sys.executable, "-c", FIRST.format(before=before, cores=cores)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)} | environment,
        timeout=300,
    )
    assert shown.stderr == ""
    return shown.stdout.splitlines()


def test_stages_are_compiled_where_they_are_waited_for(tmp_path: Path) -> None:
    groups, bounds = FUNCTIONS
    assert said(tmp_path) == ["1", groups, f"{groups} {bounds}"]
    assert said(tmp_path)[0] == f"0 {groups} {bounds}", "what is compiled is not compiled again"


def test_nothing_is_started_on_one_core_or_in_a_process_that_was_started(tmp_path: Path) -> None:
    assert said(tmp_path, cores=1) == ["0", "", ""]
    assert said(tmp_path, PLACETO_COMPILES_BESIDE="1") == ["0", "", ""]


def test_a_process_that_fails_is_waited_for_no_longer(tmp_path: Path) -> None:
    before = "import sys; beside.sys = type(sys)('sys'); beside.sys.executable = '/bin/false'"
    assert said(tmp_path, before) == ["1", "", ""]


def test_all_that_a_first_placement_has_compiled_beside_it_runs_to_the_end(capsys) -> None:
    compile_all()
    assert capsys.readouterr().out.split() == ["groups", "bounds"]
