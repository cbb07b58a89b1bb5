"""The command: every part in a process of its own; or one part, as JSON."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.output import save
from benchmarks.speed.environment import ENVIRONMENTS, environment_speed
from benchmarks.speed.others import has_grappler
from benchmarks.speed.semantics import GRAPHS as CUT
from benchmarks.speed.semantics import semantics_speed
from benchmarks.speed.simulation import GRAPHS, GROUPINGS, simulation_speed
from benchmarks.speed.timing import first_call_speed
from placeto.measurement.calibration.machine import machine

PACKAGES = ("numpy", "numba", "gymnasium", "torch", "tensorflow-cpu")


def train() -> dict[str, Any]:
    """See `training_speeds`."""
    from benchmarks.speed.training import training_speeds  # torch, likewise

    return training_speeds()


# Simulations last: by then numba has compiled everything, which takes memory of its own.
PARTS: dict[str, Callable[[], Any]] = {"first_call": first_call_speed, "training": train}
for pair in ENVIRONMENTS:
    PARTS["/".join(("environment", *pair))] = partial(environment_speed, *pair)
for name in CUT:
    PARTS[f"semantics/{name}"] = partial(semantics_speed, name)
for pair in product(GRAPHS, GROUPINGS):
    PARTS["/".join(("simulation", *pair))] = partial(simulation_speed, *pair)


def run() -> None:
    """Measures every part; prints the tables and writes them, and all figures, to `results/`."""
    from benchmarks.speed.report import markdown  # pandas would count as simulations' memory

    if not has_grappler():
        print("without Grappler: TensorFlow is not installed", file=sys.stderr)
    found: dict[str, list[Any]] = {}
    for part in PARTS:
        print(part, file=sys.stderr)
        command = [sys.executable, "-m", "benchmarks.speed", part]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True)
        found.setdefault(part.partition("/")[0], []).append(json.loads(done.stdout))
    installed = {each.metadata["Name"].lower() for each in metadata.distributions()}
    packages = {name: metadata.version(name) for name in PACKAGES if name in installed}
    document = {
        "machine": f"{machine()['processor']}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **packages},
        **found,
        **{name: found[name][0] for name in ("training", "first_call")},
    }
    save("speed", document, markdown(document), indent=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=run.__doc__)
    parts = f"print only this part, as JSON: {', '.join(PARTS)}"
    parser.add_argument("part", nargs="?", choices=PARTS, metavar="PART", help=parts)
    wanted = parser.parse_args().part
    if wanted is None:
        run()
    else:
        print(json.dumps(PARTS[wanted]()))
