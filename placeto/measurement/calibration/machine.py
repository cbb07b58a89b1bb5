"""What figures are of: the processor, its cores, versions."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """`processor`, the `cores` that this process may use, and `versions`, as JSON."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    versions = {"python": platform.python_version()}
    for package in ("tensorflow-cpu", "tensorflow", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0))
    return {"processor": model or platform.machine(), "cores": cores, "versions": versions}
