"""Memory in use over a schedule, from the lifetimes of what it holds."""

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.schedule import Schedule
from placeto.support.arrays import Floats, Ints


def memory_over_time(problem: PlacementProblem, schedule: Schedule) -> tuple[Floats, Ints]:
    """How much memory each device has in use, from instant to instant (rule 6 of the semantics).

    Args:
        problem: what was scheduled.
        schedule: what happened.

    Returns:
        `instants` (num_instants,) in seconds, ascending, the first of them 0, and `memory`
        (num_instants, num_devices) bytes: row i holds from instant i until the next. The maximum
        of each column is the schedule's peak memory.
    """
    graph, num_devices = problem.graph, problem.num_devices
    transfers = schedule.transfers
    op_device = schedule.devices[problem.op_group]
    source = op_device[graph.tensor_producer[graph.edge_tensor]]
    target = op_device[graph.edge_consumer]
    local = source == target

    output_end = schedule.finish[graph.tensor_producer]
    consumed = schedule.finish[graph.edge_consumer]
    np.maximum.at(output_end, graph.edge_tensor[local], consumed[local])
    np.maximum.at(output_end, transfers.tensor, transfers.arrival)

    copy_end = np.zeros((graph.num_tensors, num_devices))
    np.maximum.at(copy_end, (graph.edge_tensor[~local], target[~local]), consumed[~local])
    transfer, destination = np.nonzero(transfers.destinations)
    copied = transfers.tensor[transfer]

    begin = np.concatenate(
        [schedule.start, schedule.start[graph.tensor_producer], transfers.start[transfer]]
    )
    end = np.concatenate([schedule.finish, output_end, copy_end[copied, destination]])
    device = np.concatenate([op_device, op_device[graph.tensor_producer], destination])
    size = np.concatenate([graph.temp_bytes, graph.tensor_bytes, graph.tensor_bytes[copied]])

    lives = begin < end
    changes = np.concatenate([begin[lives], end[lives]])
    instants = np.union1d(0.0, changes[np.isfinite(changes)])
    memory = np.zeros((len(instants) + 1, num_devices), dtype=np.int64)
    np.add.at(memory[0], op_device, graph.param_bytes)
    np.add.at(memory, (np.searchsorted(instants, begin[lives]), device[lives]), size[lives])
    np.subtract.at(memory, (np.searchsorted(instants, end[lives]), device[lives]), size[lives])
    return instants, np.cumsum(memory, axis=0)[:-1]
