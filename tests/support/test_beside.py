import os
import subprocess
import sys
import time
from pathlib import Path

from numba import njit

from placeto.support.beside import done

FIRST = """
import os
from placeto.support import beside
from tests.support.test_beside import compiled, second
os.sched_getaffinity = lambda _: range({cores})
{before}
beside.compile_beside("tests.support.test_beside:compile_both", ("first", "second"), second)
print(len(beside._running), *compiled())
beside.wait_for("first")
print(*compiled())
beside.wait_for("second")
print(*compiled())
"""


@njit(cache=True)
def first(number):
    return number + 1


@njit(cache=True)
def second(number):
    return number + 2


def compile_both() -> None:
    first(1)
    done("first")
    time.sleep(2)  # so that the other process can look at what is compiled till then
    second(1)
    done("second")


def compiled() -> list[str]:
    """Those of the two functions that are on disk."""
    kept = Path(os.environ["NUMBA_CACHE_DIR"])
    return [name for name in ("first", "second") if any(kept.rglob(f"test_beside.{name}-*.nbi"))]


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
    assert said(tmp_path) == ["1", "first", "first second"]
    assert said(tmp_path)[0] == "0 first second", "what is compiled is not compiled again"


def test_nothing_is_started_on_one_core_or_in_a_process_that_was_started(tmp_path: Path) -> None:
    assert said(tmp_path, cores=1) == ["0", "", ""]
    assert said(tmp_path, PLACETO_COMPILES_BESIDE="1") == ["0", "", ""]


def test_a_process_that_fails_is_waited_for_no_longer(tmp_path: Path) -> None:
    before = "import sys; beside.sys = type(sys)('sys'); beside.sys.executable = '/bin/false'"
    assert said(tmp_path, before) == ["1", "", ""]


def test_all_that_a_first_placement_has_compiled_beside_it_runs_to_the_end() -> None:
    code = (
        "from placeto.bounds.heads import raise_by_joins\n"
        "from placeto.cli.compiling import compile_all\n"
        "from placeto.simulation.parts import _advance_in_parts as parts\n"
        "compile_all()\n"
        "print(len(raise_by_joins.signatures), len(parts.signatures))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["groups", "bounds", "1", "1"]
