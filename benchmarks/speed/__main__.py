"""The command: every part in a process of its own; or one part, as JSON."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.output import save
from benchmarks.speed.environment import ENVIRONMENTS, environment_speed
from benchmarks.speed.first_call import first_call_speed
from benchmarks.speed.others import has_grappler
from benchmarks.speed.report import markdown
from benchmarks.speed.simulation import GRAPHS, GROUPINGS, simulation_speed
from placeto.measurement.calibration.machine import machine

PACKAGES = ("numpy", "numba", "gymnasium", "torch", "tensorflow-cpu")
TRAINING_SECONDS = 20


def train() -> dict[str, Any]:
    """Training steps a second as `placeto place` trains, and as `placeto train` does."""
    from benchmarks.training import training_speed
    from placeto import PlacementProblem, load_cluster, load_graph
    from placeto.models.placeto_2019.settings import Placeto2019Config
    from placeto.placers.configs import PLACETO_2019

    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x2"), "papers")
    place = replace(PLACETO_2019.default, initial_placement="first")
    configs = {
        "`placeto place`": place,
        "likewise, 16 episodes at once": replace(place, episodes=16),
        "`placeto train`": Placeto2019Config(),
    }
    return {
        name: training_speed(problem, config, TRAINING_SECONDS) for name, config in configs.items()
    }


def run() -> None:
    """Measures every part; prints the tables and writes them, and all figures, to `results/`."""
    if not has_grappler():
        print("without Grappler: TensorFlow is not installed", file=sys.stderr)
    found = {part: in_a_process(part) for part in PARTS}
    installed = {each.metadata["Name"].lower() for each in metadata.distributions()}
    packages = {name: metadata.version(name) for name in PACKAGES if name in installed}
    document = {
        "machine": f"{machine()['processor']}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **packages},
        "simulation": [each for part, each in found.items() if part.startswith("simulation/")],
        "environment": [each for part, each in found.items() if part.startswith("environment/")],
        "training": found["training"],
        "first_call": found["first_call"],
    }
    save("speed", document, markdown(document), indent=1)


def in_a_process(part: str) -> Any:
    """What a part finds in a process of its own."""
    print(part, file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks.speed", part]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


# Simulations last: by then numba has compiled everything, which takes memory of its own.
PARTS: dict[str, Callable[[], Any]] = {"first_call": first_call_speed, "training": train}
for graph, grouping in ENVIRONMENTS:
    PARTS[f"environment/{graph}/{grouping}"] = partial(environment_speed, graph, grouping)
for graph, grouping in product(GRAPHS, GROUPINGS):
    PARTS[f"simulation/{graph}/{grouping}"] = partial(simulation_speed, graph, grouping)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=run.__doc__)
    parts = f"print only this part, as JSON: {', '.join(PARTS)}"
    parser.add_argument("part", nargs="?", choices=PARTS, metavar="PART", help=parts)
    wanted = parser.parse_args().part
    if wanted is None:
        run()
    else:
        print(json.dumps(PARTS[wanted]()))
