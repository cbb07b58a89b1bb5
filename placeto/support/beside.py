"""Compiling on two cores: where nothing is compiled yet, another process compiles what comes later.

Numba compiles one function after the other, whatever the threads. What it compiles is kept on disk:
so after an installation another process compiles, while this one gets to where it needs that.
"""

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INSIDE = "PLACETO_COMPILES_BESIDE"  # set in such a process, which starts none itself


class _Beside:
    """A process that compiles, and tells by a line of each stage that is done."""

    def __init__(self, program: str, stages: Sequence[str]) -> None:
        self._left = list(stages)
        self._lock = threading.Lock()
        module, _, function = program.partition(":")
        paths = filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])
        self._process = subprocess.Popen(
            # -P: what lies in the working directory is not imported in a package's stead.
            [sys.executable, "-P", "-c", f"from {module} import {function}; {function}()"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), INSIDE: "1"},
            text=True,
        )
        atexit.register(self._end)

    def wait_for(self, stage: str) -> None:
        """Returns once a stage is done, or will never be."""
        assert self._process.stdout is not None
        with self._lock:
            while stage in self._left:
                line = self._process.stdout.readline()
                # No line: it has ended.
                self._left = [each for each in self._left if line and each != line.strip()]

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()


_running: list[_Beside] = []


def compile_beside(program: str, stages: Sequence[str], last: Any) -> bool:
    """Has a function called by another process, which compiles all that it calls.

    Nothing is done where there is one core, or where that is compiled.

    Args:
        program: `module:function`; the function says `done` of each stage.
        stages: what can be waited for.
        last: a compiled function of the last of them.

    Returns:
        Whether a process was started. What it does not compile is best compiled at once.
    """
    name = f"{last.py_func.__module__.rpartition('.')[2]}.{last.py_func.__qualname__}"
    kept = any(Path(last.stats.cache_path).glob(f"{name}-*.nbi"))
    if not (kept or _running or INSIDE in os.environ or len(os.sched_getaffinity(0)) < 2):
        with contextlib.suppress(OSError):  # where no process can be started, this one compiles
            _running.append(_Beside(program, stages))
            return True
    return False


def wait_for(stage: str) -> None:
    """Waits for a stage that another process compiles; to be called before it is needed."""
    for each in _running:
        each.wait_for(stage)


def done(stage: str) -> None:
    """Says, in such a process, that a stage is compiled."""
    print(stage, flush=True)
