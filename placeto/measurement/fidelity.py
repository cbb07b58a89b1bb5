"""Whether a traced step went as simulated: its order, and how long tensors waited to be sent."""

from dataclasses import dataclass

import numpy as np

from placeto.measurement.measured import Measurement
from placeto.measurement.trace import Trace, read_trace
from placeto.problem import PlacementProblem
from placeto.simulation import Schedule, ordered_ops, starting_order
from placeto.support.arrays import Floats

# From which median wait on it is worth a warning, and from which share of the step spent in waits.
# Where threads are free to serve tensors most wait for microseconds, else for as long as an op
# takes. What is there from the start, such as variables, waits for its first request in any case.
_LONG_WAIT_SECONDS = 1e-3
_LARGE_SHARE = 0.02


@dataclass(frozen=True)
class Conduct:
    """How a traced step went, beside the simulated one.

    Attributes:
        in_order: share of the pairs of ops on a device that began in the simulated order.
        send_waits: (n,) seconds from when each tensor that was sent was there to when it was sent.
        step_seconds: of the traced step.
    """

    in_order: float
    send_waits: Floats
    step_seconds: float

    @property
    def send_wait(self) -> float | None:
        """Median seconds that a tensor waited; None where none was sent."""
        return float(np.median(self.send_waits)) if len(self.send_waits) else None

    @property
    def tensors_wait(self) -> bool:
        """Whether tensors waited so long, and took so much of the step, that it is worth a word."""
        return bool(
            (self.send_wait or 0.0) >= _LONG_WAIT_SECONDS
            and self.send_waits.sum() >= _LARGE_SHARE * self.step_seconds
        )


def conduct(problem: PlacementProblem, schedule: Schedule, measurement: Measurement) -> Conduct:
    """Compares a traced step with the simulated one.

    Args:
        problem: what was placed.
        schedule: the simulated step.
        measurement: the measured one, with a trace.

    Raises:
        PlacetoError: the trace cannot be read.
    """
    names = [str(device) for device in problem.cluster.tensorflow_devices()]
    trace = read_trace(measurement.traces[-1], names)
    # How long what was there waited: both instants are of the sender's clock. The end of the op
    # that made a tensor is known where it runs under the name that it has in the graph.
    ended = {(run.op, run.device): run.end for run in trace.ops}
    waits = [
        max(each.begin - ended[each.producer, each.source], 0.0)
        for each in trace.received
        if (each.producer, each.source) in ended
    ]
    in_order = _share_in_order(problem, schedule, trace)
    return Conduct(in_order, np.array(waits, dtype=np.float64), trace.seconds)


def _share_in_order(problem: PlacementProblem, schedule: Schedule, trace: Trace) -> float:
    """The share of pairs of ops on a device that began in the simulated order; 1 of no pairs.

    That is Kendall's count of concordant pairs, over all devices. Counted are the ops that are
    kept in order (see `ordered_ops`) and that the trace has where they were placed.
    """
    names, device = problem.graph.op_names, schedule.devices[problem.op_group]
    began = {(run.op, run.device): run.begin for run in trace.ops}
    ordered = ordered_ops(problem.graph)
    begins: list[list[float]] = [[] for _ in range(problem.num_devices)]
    for op in starting_order(problem, schedule):
        key = names[op], int(device[op])
        if ordered[op] and key in began:
            begins[key[1]].append(began[key])
    pairs = kept = 0
    for of_device in map(np.array, begins):
        pairs += len(of_device) * (len(of_device) - 1) // 2
        kept += sum(
            int(np.count_nonzero(of_device[number + 1 :] >= begin))
            for number, begin in enumerate(of_device)
        )
    return kept / pairs if pairs else 1.0
