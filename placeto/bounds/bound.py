"""The lower bound of a problem's step time, put together."""

import numpy as np

from placeto.bounds.crossing import crossing_bound
from placeto.bounds.fill import fill_bound
from placeto.bounds.heads import join_heads, one_machine, path_heads
from placeto.bounds.lone import below_lone
from placeto.bounds.memory import fitting_devices
from placeto.bounds.queues import queue_pairs
from placeto.bounds.relaxed import Relaxed, mirror, relax
from placeto.bounds.work import throughput_bound, window_bound, work_bound
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats
from placeto.support.beside import wait_for

MOST_ANCESTORS = 200  # of an op, looked at for its head; more gain little
ANCESTORS_IN_ALL = 4_000_000  # times classes of devices; what about a second allows
LEAST_ANCESTORS = 8


def critical_path(problem: PlacementProblem) -> float:
    """Seconds of the longest chain of ops, wherever each of them is.

    Each op is on its best device for the chain, ops of a group on one; between ops lies the launch
    overhead on one device, or the transfer to another one (see `path_heads`).
    """
    none = np.zeros(0, dtype=np.int64)
    relaxed = relax(problem, problem.allowed, (none, none))
    ends = path_heads(relaxed) + relaxed.seconds
    return below_lone(problem, float(ends.min(axis=1).max()))


def lower_bound(problem: PlacementProblem) -> float:
    """Seconds that no feasible placement is below: its step time, or by the problem's objective.

    For throughput it is `throughput_bound`. For step times it holds for the simulation's semantics:
    pins, groups, memory and its queues. A tensor flows through the parts of its transfer: an edge
    has the slowest of them. What they cost devices beside their ops is left out; with ranks no
    order in the queues is known. Where single devices are faster alone, it is not above theirs. The
    largest of

    - `work_bound`: all work, divided over the devices;
    - the longest of any op's head, its seconds and its tail, the time from its end to the step's.
      Heads come from paths of ops and transfers, from known orders in the queues (`queue_pairs`),
      and from branches that must run one after the other or be transferred (`join_heads`); tails
      are the heads when time runs backwards;
    - each group's ops with heads and tails, one at a time on the group's best device;
    - work that lies between heads and tails, divided over the devices (`window_bound`);
    - all work, and what the devices wait for before it and after it (`fill_bound`);
    - all work, and what must cross narrow links if hosts share it out (`crossing_bound`).

    Graphs too large for all of it get fewer ancestors looked at, then none.
    """
    if problem.objective == "throughput":
        return throughput_bound(problem)
    wait_for("bounds")
    allowed = fitting_devices(problem)
    relaxed = relax(problem, allowed, queue_pairs(problem, allowed))
    heads = _heads(relaxed)
    tails = _heads(mirror(relaxed))[::-1]
    shared = max(
        work_bound(problem),
        group_bound(relaxed, heads, tails),
        window_bound(problem, relaxed, heads, tails),
        fill_bound(problem, relaxed, heads, tails),
    )
    shared = max(shared, crossing_bound(problem, shared))
    return below_lone(problem, shared)


def group_bound(relaxed: Relaxed, heads: Floats, tails: Floats) -> float:
    """Seconds that some group needs, from the heads to the tails of its ops, on its best device.

    These are (num_ops, num_classes) seconds before the start of each op, and after its end.
    """
    num_groups, num_classes = relaxed.allowed.shape
    least = np.full((num_groups, num_classes), np.inf)
    order = np.argsort(relaxed.group, kind="stable")
    ends = np.cumsum(np.bincount(relaxed.group))
    for group, c in zip(*np.nonzero(relaxed.allowed), strict=True):
        ops = order[ends[group - 1] if group else 0 : ends[group]]
        seconds = relaxed.seconds[ops, c]
        head, tail = heads[ops, c], tails[ops, c]
        least[group, c] = (head + seconds + tail).max()
        busy = seconds > 0
        if busy.sum() > 1:
            overhead = relaxed.overhead[c]
            machine = one_machine(head[busy], seconds[busy] + overhead, tail[busy] - overhead)
            least[group, c] = max(least[group, c], machine)
    return float(least.min(axis=1).max())


def _heads(relaxed: Relaxed) -> Floats:
    num_ops, num_classes = relaxed.seconds.shape
    reach = min(MOST_ANCESTORS, ANCESTORS_IN_ALL // (num_ops * num_classes))
    return path_heads(relaxed) if reach < LEAST_ANCESTORS else join_heads(relaxed, reach)
