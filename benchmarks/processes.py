"""Processes, and what they have had of the processors."""

from contextlib import suppress

import psutil


def processor_seconds(process: int | None = None) -> float:
    """User and system time of a process so far; by default of this one."""
    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)


def busy_seconds() -> float:
    """What all processes have had of all processors so far, and what the host took of these."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.steal)


def descendants(process: int | None = None) -> dict[psutil.Process, str]:
    """Those that one started (by default this one), and those that these did: command lines."""
    found = {}
    for each in psutil.Process(process).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if alive(each):
                found[each] = " ".join(each.cmdline()).strip()
    return found


def alive(process: psutil.Process) -> bool:
    """Whether a process has not ended."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def ray_workers(process: int | None = None) -> list[int]:
    """Numbers of the processes of a process's crews; by default this one's."""
    found = descendants(process)
    return [each.pid for each, line in found.items() if line.startswith("ray::Worker")]
