"""One device, one CPU, random devices: the obvious placements."""

import numpy as np

from placeto.initial import all_on, random_placement
from placeto.placers.base import Incumbent, NotApplicable

RANDOM_DRAWS = 100
CELLS_AT_ONCE = 2**22  # of a batch of placements, which is to be small beside the problem


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
    """The best of 100 placements, each group's device drawn uniformly from those allowed.

    Of a graph so large that they do not go into one batch, fewer if the budget is spent.
    """
    problem = incumbent.problem
    together = max(1, CELLS_AT_ONCE // problem.num_groups)
    for drawn in range(0, RANDOM_DRAWS, together):
        if drawn and incumbent.expired:
            break
        count = min(together, RANDOM_DRAWS - drawn)
        incumbent.offer_many([random_placement(problem, rng) for _ in range(count)])
