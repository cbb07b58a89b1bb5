"""Control dependencies that make a runtime follow a schedule's order on each device."""

import numpy as np

from placeto.graph import ComputationGraph
from placeto.problem import PlacementProblem
from placeto.simulation.schedule import Schedule
from placeto.support.arrays import Bools, Ints

# What a runtime has done before it begins, or does in no time to speak of.
TIMELESS = frozenset({"Placeholder", "VarHandleOp", "Const", "NoOp", "Identity"})
_BRANCHES, _JOINS = frozenset({"Switch", "RefSwitch"}), frozenset({"Merge", "RefMerge"})


def ordered_ops(graph: ComputationGraph) -> Bools:
    """(num_ops,) which ops are kept in order: those that take time, whatever they are said to cost.

    What stands behind a branch of TensorFlow 1 (`Switch`) is left out up to where it is joined: it
    may not run at all, and then nothing would that waits for it.
    """
    ordered = np.array([kind not in TIMELESS for kind in graph.op_types], dtype=bool)
    if not _BRANCHES.isdisjoint(graph.op_types):
        maybe = np.zeros(graph.num_ops, dtype=bool)
        producers = _producers(graph)
        for op in graph.topological_order.tolist():
            kind = graph.op_types[op]
            maybe[op] = kind in _BRANCHES or (kind not in _JOINS and maybe[producers[op]].any())
        ordered &= ~maybe
    return ordered


def starting_order(problem: PlacementProblem, schedule: Schedule) -> Ints:
    """(num_ops,) the ops by the instants at which they start, and in topological order."""
    return np.lexsort((np.argsort(problem.graph.topological_order), schedule.start))


def control_edges(
    problem: PlacementProblem, schedule: Schedule, ordered: Bools | None = None
) -> Ints:
    """The fewest edges that let the ops of each device start in the schedule's order only.

    Each op follows the one before it on its device. Where a path leads from the one to the other
    anyway, through the graph or through other such edges, there is no edge. Nothing is closed to a
    cycle, as every edge of the graph, too, leads from an earlier start to a later one.

    What is held back for an op of another device (`placeto.order.held_back`) has no edge from it,
    which would cost a transfer: its own device's order has as few microbatches on their way.

    Paths are told by what each op comes after on each device, the last op of it (vector clocks;
    Fidge 1988, Mattern 1989).

    Kept in order are (num_ops,) `ordered` ops; those of `ordered_ops` if None.

    Returns:
        (n, 2) ops: which one must end before which other begins.
    """
    graph = problem.graph
    if ordered is None:
        ordered = ordered_ops(graph)
    device = np.asarray(schedule.devices)[problem.op_group].tolist()
    producers = _producers(graph)
    behind = np.full((graph.num_ops, problem.num_devices), -1, dtype=np.int64)
    last = [-1] * problem.num_devices
    place = [0] * problem.num_devices
    edges: list[tuple[int, int]] = []
    for op in starting_order(problem, schedule).tolist():
        clock = behind[producers[op]].max(axis=0, initial=-1)
        if ordered[op]:
            where = device[op]
            before = last[where]
            if before >= 0:
                if clock[where] < behind[before, where]:
                    edges.append((before, op))
                clock = np.maximum(clock, behind[before])
            clock[where] = place[where]
            place[where] += 1
            last[where] = op
        behind[op] = clock
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def _producers(graph: ComputationGraph) -> list[Ints]:
    """Of each op those whose outputs it consumes."""
    start, edges = graph.inputs
    return np.split(graph.op_edges[0][edges], start[1:-1])
