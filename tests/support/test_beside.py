import os
import subprocess
import sys
from pathlib import Path

import pytest

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
