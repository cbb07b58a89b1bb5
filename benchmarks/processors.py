"""Processor time, as the kernel counts it (proc(5))."""

import os
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(process: int | str) -> float:
    """User and system time of a process so far."""
    fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def busy_seconds() -> float:
    """What all processes have had of all processors so far, and what the host took of these."""
    # user, nice, system, idle, iowait, irq, softirq, steal
    fields = [int(field) for field in (_PROC / "stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields[:3]) + fields[7]) / _TICKS
