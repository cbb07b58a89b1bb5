"""Processes, as the kernel tells of them (proc(5))."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process; `started` tells it from a later one of the same number."""

    pid: int
    parent: int
    started: int
    title: str

    def alive(self) -> bool:
        """Whether it has not ended."""
        return any((each.pid, each.started) == (self.pid, self.started) for each in running())


def running() -> list[Process]:
    """All processes that have not ended."""
    found = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            stat = (folder / "stat").read_text(errors="replace")
            state, parent, *rest = stat.rpartition(")")[2].split()
            title = (folder / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
            if state != "Z":
                found.append(Process(int(folder.name), int(parent), int(rest[17]), title))
    return found


def descendants(pid: int) -> list[Process]:
    """The processes that a process started, and those that these started."""
    processes = running()
    family = {pid}
    while more := {each.pid for each in processes if each.parent in family} - family:
        family |= more
    return [each for each in processes if each.pid in family - {pid}]


def ray_workers(pid: int | None = None) -> list[int]:
    """Numbers of the processes of a process's crews; by default this one's."""
    mine = descendants(os.getpid() if pid is None else pid)
    return [each.pid for each in mine if each.title.startswith("ray::Worker")]
