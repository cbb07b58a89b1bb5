"""What a placement is worth: its step time, and what its memory over the limit costs.

Or, by a problem's `objective`, its throughput in the place of both: the seconds a microbatch of a
pipeline that never drains (the max-load of Tarnawski et al. 2020, arXiv:2006.16423), and the memory
of parameters and one microbatch.

Three answers, for three uses: ρ, which agents are rewarded and judged by; the rank, by which the
best placement is kept; and the cost that a search makes small, so that it leaves what does not fit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes, simulate_many
from placeto.simulation.loads import throughputs
from placeto.simulation.stage_memory import stage_memory
from placeto.simulation.stages import PipelineSchedule, run_stages, stages_of
from placeto.simulation.state import State
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner, njit

GIB = 2.0**30
UNFIT = 1e15  # above every step time, and no more than bytes can be added to
# What a placement that does not fit costs a search, as shares of the shortest start: at all, and if
# all of the graph's memory is over the limit.
ANY_EXCESS, WHOLE_EXCESS = 0.1, 4.0


def evaluate(problem: PlacementProblem, many: Ints) -> Outcomes:
    """What (batch, num_groups) placements are by the problem's objective.

    Where that is throughput, the outcomes' step times are seconds a microbatch; see `throughputs`.
    """
    if problem.objective == "throughput":
        return throughputs(problem, many)
    return simulate_many(problem, many)


def overflow(problem: PlacementProblem, peak_memory: Ints) -> NDArray[Any]:
    """(...) bytes over the limits of all devices, of (..., num_devices) peaks."""
    return np.maximum(peak_memory - problem.memory_limit, 0).sum(axis=-1)


@inner(cache=True)
def overflow_so_far(s: State, memory_limit: Ints) -> float:
    """Bytes over the limits of all devices, of a simulation on its way."""
    over = 0.0
    for device in range(len(memory_limit)):
        over += max(s.devices[device].peak - memory_limit[device], 0)
    return over


def staged_worth(
    problem: PlacementProblem, devices: Ints, schedule: PipelineSchedule
) -> tuple[float, float]:
    """Bytes over the limits of all devices, and seconds, of a pipeline's step; less is better.

    Both are infinite where PyTorch refuses the stages.

    Args:
        problem: its groups are a row, of which a stretch is a stage.
        devices: (num_groups,) where each group is.
        schedule: that the stages run.
    """
    seconds = run_stages(stages_of(problem, devices), schedule).seconds
    over = float(overflow(problem, stage_memory(problem, devices, schedule)))
    return over if np.isfinite(seconds) else np.inf, seconds


def penalised_time(problem: PlacementProblem, outcomes: Outcomes, memory_penalty: float) -> Floats:
    """ρ: step time plus `memory_penalty` for every GiB over the limit, summed over devices.

    Placeto (Addanki et al. 2019, arXiv:1906.08879). Of a batch, (batch,) seconds.
    """
    found, penalty = np.empty(len(outcomes.step_time)), float(memory_penalty)
    _penalise(outcomes.step_time, outcomes.peak_memory, problem.memory_limit, penalty, found)
    return found


@njit(cache=True)
def _penalise(step_time: Floats, peak: Ints, limit: Ints, penalty: float, found: Floats) -> None:
    for row in range(len(step_time)):
        found[row] = penalised(step_time[row], peak[row], limit, penalty)


@inner(cache=True)
def penalised(step_time: float, peak: Ints, limit: Ints, penalty: float) -> float:
    """ρ of one placement, of (num_devices,) peaks and limits; see `penalised_time`."""
    over = 0
    for device in range(len(limit)):
        over += max(peak[device] - limit[device], 0)
    return step_time + penalty * (over / GIB)


@njit(cache=True)
def rank(step_time: float, over: float) -> float:
    """Orders placements as the incumbent does: what fits, by step time; then by bytes over."""
    return UNFIT + over if over > 0 else step_time


@inner(cache=True)
def search_cost(step_time: float, over: float, scale: float, whole: int) -> float:
    """What a search makes small: step time, and more where a placement does not fit in memory.

    All is in seconds: `over` bytes over the limits, as a share of the graph's `whole` bytes, are
    reckoned in `scale` seconds.
    """
    if over > 0:
        return step_time + scale * (ANY_EXCESS + WHOLE_EXCESS * over / whole)
    return step_time


def search_costs(
    problem: PlacementProblem, step_time: Floats | np.float64, peak_memory: Ints, scale: float
) -> Floats:
    """`search_cost` of a batch: (...) seconds, of (...) step times and (..., num_devices) peaks."""
    over = overflow(problem, peak_memory)
    share = over / max(int(problem.group_memory.sum()), 1)
    return step_time + scale * (ANY_EXCESS * (over > 0) + WHOLE_EXCESS * share)
