"""One device, one CPU, random devices: the obvious placements."""

import numpy as np

from placeto.initial import all_on, random_placement
from placeto.placers.base import Incumbent, NotApplicable

RANDOM_DRAWS = 100


def place_single(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The best single device."""
    problem = incumbent.problem
    incumbent.offer_many([all_on(problem, device) for device in range(problem.num_devices)])


def place_cpu(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Everything on the best device of kind `cpu`.

    Raises:
        NotApplicable: the cluster has none.
    """
    problem = incumbent.problem
    devices = problem.cluster.devices
    cpus = [number for number, device in enumerate(devices) if device.kind == "cpu"]
    if not cpus:
        raise NotApplicable(
            f"cluster {problem.cluster.name!r} has no device of kind cpu; method cpu needs one"
        )
    incumbent.offer_many([all_on(problem, device) for device in cpus])


def place_random(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The best of 100 placements, each group's device drawn uniformly from those allowed."""
    problem = incumbent.problem
    incumbent.offer_many([random_placement(problem, rng) for _ in range(RANDOM_DRAWS)])
