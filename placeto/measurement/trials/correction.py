"""What measured placements say of a problem's costs, and the problem with those costs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeto.measurement.trace import Trace
from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.simulation.scaled import scaled_problem
from placeto.support.arrays import Floats, Ints

# As many observations as what is known of a type is worth to one of its ops, and what is known of
# all ops to a type.
PRIOR_OBSERVATIONS = 2.0
# Traces tell microseconds: an op that takes less says nothing of its ratio.
RESOLUTION_SECONDS = 1e-6
# How far a global factor may be from 1, and a step from the simulated one, as logarithms.
PRIOR_SPREAD = 0.3
STEP_SPREAD = 0.02
LARGEST_FACTOR = 8.0


@dataclass(frozen=True, eq=False)
class Observed:
    """What a placement's runs said.

    Attributes:
        devices: (num_groups,) device of each group.
        step_time: seconds of a step, while nothing else slowed it.
        kernels: (num_traces, num_ops) seconds of each op's kernel; NaN where a trace lacks it.
    """

    devices: Ints
    step_time: float
    kernels: Floats


@dataclass(frozen=True, eq=False)
class Correction:
    """A problem with corrected costs, and what it took.

    Attributes:
        problem: with the corrected costs; groups, pins and order are those of the one given.
        ops: factor of all op times, on top of those of each op.
        sizes: factor of the seconds a byte of channels and links.
        ends: factor of what transfers cost beside their bytes: latencies, overheads, ends.
    """

    problem: PlacementProblem
    ops: float = 1.0
    sizes: float = 1.0
    ends: float = 1.0


def correct(problem: PlacementProblem, observed: Sequence[Observed]) -> Correction:
    """Corrects a problem's costs by what was observed of its placements.

    Each op gets a factor of its own from the traces, see `op_factors`. Three factors of all costs
    are then fitted to the step times, by least squares of log(simulated / measured) that few
    outliers cannot bend, and with a prior that keeps the factors near 1.
    """
    if not observed:
        return Correction(problem)
    from scipy.optimize import least_squares

    factors = op_factors(problem, observed)
    many = np.stack([each.devices for each in observed])
    measured = np.log([each.step_time for each in observed])

    def corrected(logarithms: Floats) -> Correction:
        ops, sizes, ends = np.exp(logarithms).tolist()
        columns = {kind: ops * column for kind, column in factors.items()}
        scaled = scaled_problem(
            problem, bandwidth=1 / sizes, latency=ends, ends=ends, op_seconds=columns
        )
        return Correction(scaled, ops, sizes, ends)

    def residuals(logarithms: Floats) -> Floats:
        simulated = np.maximum(step_times(corrected(logarithms).problem, many), 1e-12)
        off = np.log(simulated) - measured
        return np.concatenate([off / STEP_SPREAD, logarithms / PRIOR_SPREAD])

    bound = np.log(LARGEST_FACTOR)
    # A step time is piecewise linear in the factors: small differences would see one piece only.
    start = np.array([np.clip(-np.median(residuals(np.zeros(3))[:-3]) * STEP_SPREAD, -2, 2), 0, 0])
    fit = least_squares(
        residuals, start, bounds=(-bound, bound), loss="soft_l1", diff_step=0.02, max_nfev=12
    )
    return corrected(fit.x)


def op_factors(problem: PlacementProblem, observed: Sequence[Observed]) -> dict[str, Floats]:
    """Device kind -> (num_ops,) factors of the op times, by the traces.

    The logarithm of an op's factor is the median log(kernel / op time) of its n observations,
    shrunk towards its type's: (n * own + k * type's) / (n + k), with k `PRIOR_OBSERVATIONS`. A
    type's is the mean of its observed ops', shrunk likewise towards that of all of the kind. A kind
    on which nothing was observed keeps its op times.
    """
    graph, cluster = problem.graph, problem.cluster
    types, type_of = np.unique(np.array(graph.op_types), return_inverse=True)
    device_kind = np.array([cluster.kinds.index(device.kind) for device in cluster.devices])
    logs: dict[str, Floats] = {}
    for number, kind in enumerate(cluster.kinds):
        believed = graph.op_seconds[kind]
        rows = [np.empty((0, graph.num_ops))]
        for each in observed:
            here = device_kind[each.devices[problem.op_group]] == number
            known = here & np.isfinite(believed) & (believed > 0)
            lone = (each.devices == each.devices[0]).all()
            factor = problem.alone[each.devices[0]] if lone else 1.0
            rows.append(np.where(known, each.kernels / factor, np.nan))
        kernels = np.concatenate(rows)
        count = np.isfinite(kernels).sum(axis=0)
        own = np.zeros(graph.num_ops)
        if (seen := count > 0).any():
            seconds = np.maximum(np.nanmedian(kernels[:, seen], axis=0), 0)
            own[seen] = np.log(
                (seconds + RESOLUTION_SECONDS) / (believed[seen] + RESOLUTION_SECONDS)
            )
            whole = own[seen].mean()
            members = np.bincount(type_of[seen], minlength=len(types))
            sums = np.bincount(type_of[seen], weights=own[seen], minlength=len(types))
            of_type = (sums + PRIOR_OBSERVATIONS * whole) / (members + PRIOR_OBSERVATIONS)
            own = (count * own + PRIOR_OBSERVATIONS * of_type[type_of]) / (
                count + PRIOR_OBSERVATIONS
            )
        logs[kind] = own
    return {kind: np.exp(own) for kind, own in logs.items()}


def kernel_seconds(problem: PlacementProblem, devices: Ints, trace: Trace) -> Floats:
    """(num_ops,) seconds that each op's kernel took where it was placed; NaN where it did not."""
    number = {name: op for op, name in enumerate(problem.graph.op_names)}
    op_device = devices[problem.op_group]
    seconds = np.full(problem.graph.num_ops, np.nan)
    for run in trace.ops:
        op = number.get(run.op)
        if op is not None and op_device[op] == run.device:
            seconds[op] = run.seconds + (0.0 if np.isnan(seconds[op]) else seconds[op])
    return seconds
