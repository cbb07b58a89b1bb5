"""What placements can fit in memory."""

from collections.abc import Sequence

import numpy as np

from placeto.bounds.queues import SHORTEST
from placeto.problem import PlacementProblem
from placeto.simulation.loads import resident_bytes
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.units import format_bytes

MANY_GROUPS = 4096  # above, parameters are not divided by a linear program
MARGIN = 1e-9  # by which a program's answer must exceed a device to prove anything


def infeasibility(problem: PlacementProblem) -> str | None:
    """Why no placement is feasible, in one line; None if that is not proven.

    Three proofs: a group needs more than any device that it may be on has (`least_memory`); the
    parameters need more than all devices have; parameters cannot even be divided, by fractions of
    groups, over the devices that the groups may be on (a linear program; what counts is the value
    of its dual prices, worked out anew).
    """
    devices, limit = problem.cluster.devices, problem.memory_limit
    need = least_memory(problem)
    fits = problem.allowed & (need <= limit)
    if not fits.any(axis=1).all():
        group = int(np.argmin(fits.any(axis=1)))
        of_group = np.where(problem.allowed[group], limit, -1)
        device = int(of_group.argmax())
        return (
            f"no placement fits in memory: group {group} "
            f"({problem.group_names[group]!r} and what goes with it) needs at least "
            f"{format_bytes(need[group, device])}, and {devices[device].name!r}, the largest "
            f"device that it may be on, has {format_bytes(limit[device])}"
        )
    parameters = problem.group_parameters
    total, room = int(parameters.sum()), int(limit.sum())
    if total > room:
        return (
            f"no placement fits in memory: the parameters take {format_bytes(total)}, all "
            f"devices together have {format_bytes(room)}"
        )
    fullness = _least_fullness(parameters, fits, limit)
    if fullness > 1 + MARGIN:
        return (
            "no placement fits in memory: however the parameters are divided over the devices "
            f"that their groups may be on, one gets at least {fullness:.4g} times what it has"
        )
    return None


def least_memory(problem: PlacementProblem) -> Ints:
    """(num_groups, num_devices) bytes that each group needs at least on each device.

    Where the objective is throughput, `resident_bytes`; else of a step that is simulated:

    Its parameters, and while one of its ops runs, what that op reads, writes and works in; only
    ops that take time are counted, since for the others that may be held for no time at all.
    """
    if problem.objective == "throughput":
        return np.repeat(resident_bytes(problem)[:, None], problem.num_devices, axis=1)
    graph = problem.graph
    running = graph.temp_bytes.astype(np.int64)
    np.add.at(running, graph.tensor_producer, graph.tensor_bytes)
    np.add.at(running, graph.edge_consumer, graph.tensor_bytes[graph.edge_tensor])
    held = np.where(problem.op_seconds >= SHORTEST, running[:, None], 0)
    most = np.zeros((problem.num_groups, problem.num_devices), dtype=np.int64)
    np.maximum.at(most, problem.op_group, held)
    return most + problem.group_parameters[:, None]


def fitting_devices(problem: PlacementProblem) -> Bools:
    """(num_groups, num_devices) where a group may be in a placement that fits in memory.

    `problem.allowed` where that would leave a group nowhere: then no placement fits, and bounds are
    of all.
    """
    fits: Bools = problem.allowed & (least_memory(problem) <= problem.memory_limit)
    return fits if fits.any(axis=1).all() else problem.allowed


def _least_fullness(parameters: Ints, fits: Bools, limit: Ints) -> float:
    """A lower bound of the largest share of its memory that any device gives to parameters.

    For prices of the devices' bytes, so that all memory together costs 1, it is what the parameters
    cost, each group's where they are cheapest.
    """
    some = np.flatnonzero(parameters)
    if len(some) > MANY_GROUPS or fits[some].all():
        return 0.0
    parameters, fits = parameters[some], fits[some]
    scale = max(float(parameters.max()), 1.0)
    shares = np.broadcast_to((parameters / scale)[:, None], fits.shape)
    prices = dual_prices(fits, [shares], limit / scale, np.zeros(len(limit)))
    total = float(prices @ limit)
    if total <= 0:
        return 0.0
    cheapest = np.where(fits, prices, np.inf).min(axis=1)
    return float(cheapest @ parameters) / total


def dual_prices(can: Bools, uses: Sequence[Floats], level: Floats, room: Floats) -> Floats:
    """Prices by which a linear program proves how groups can be divided; all 0 if it is not solved.

    The shares x of a group add up to 1 over the columns, devices or classes of them, where it can
    be. Least is made t, so that in each row, which is of one use and one column,

        sum(use x) <= room + level t.

    Args:
        can: (num_groups, num_columns) where groups can be.
        uses: of whole groups, (num_groups, num_columns) each; the rows of each come in turn.
        level: (n,) of the first n rows; 0 for the others.
        room: (num_rows,) as the prices are, none of which is negative.
    """
    from scipy.optimize import linprog  # slow to import
    from scipy.sparse import csr_array

    group, column = np.nonzero(can)
    pairs, (num_groups, num_columns) = np.arange(len(group)), can.shape
    rows = [*(column + num_columns * use for use in range(len(uses))), np.arange(len(level))]
    columns = [*[pairs] * len(uses), np.full(len(level), len(group))]
    entries = np.concatenate([*(use[group, column] for use in uses), -level])
    shape = (len(room), len(group) + 1)
    answer = linprog(
        np.append(np.zeros(len(group)), 1.0),
        A_ub=csr_array((entries, (np.concatenate(rows), np.concatenate(columns))), shape),
        b_ub=room,
        A_eq=csr_array((np.ones(len(group)), (group, pairs)), (num_groups, shape[1])),
        b_eq=np.ones(num_groups),
        method="highs",
    )
    if answer.status != 0:
        return np.zeros(len(room))
    return np.maximum(-answer.ineqlin.marginals, 0.0)
