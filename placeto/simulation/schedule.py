"""What a simulation or a measured run says happened."""

from dataclasses import dataclass, is_dataclass

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Parts:
    """What transfers keep, one after the other, each of it first what is nearest to its source.

    A part keeps a device, which sends or receives, a link, or, of a channel without a path, the
    channel.

    Attributes:
        transfer: (num_parts,) which, ascending.
        device: (num_parts,) what sends or receives; -1 for a link or a channel.
        link: (num_parts,) what is on the channel's path; -1 for a device or a channel.
        start: (num_parts,) seconds.
        finish: (num_parts,) seconds, when it has kept it for long enough; the transfer may still
            wait there for the part before.
    """

    transfer: Ints
    device: Ints
    link: Ints
    start: Floats
    finish: Floats

    def __len__(self) -> int:
        return len(self.transfer)


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfers of one step, in the order in which they were requested.

    Attributes:
        tensor: (num_transfers,) what is carried.
        channel: (num_transfers,) what carries it.
        destinations: (num_transfers, num_devices) where it is carried to; several on a multicast
            channel, else one.
        request: (num_transfers,) seconds, when the producer finished.
        start: (num_transfers,) seconds, when the channel, or its first part, took it up.
        sent: (num_transfers,) seconds, when its last byte had left the last part.
        arrival: (num_transfers,) seconds, when it was there.
        parts: what they kept meanwhile.
    """

    tensor: Ints
    channel: Ints
    destinations: Bools
    request: Floats
    start: Floats
    sent: Floats
    arrival: Floats
    parts: Parts

    def __len__(self) -> int:
        return len(self.tensor)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Start and finish of each op, transfers, and peak memory of one step.

    Attributes:
        devices: (num_groups,) the placement.
        step_time: seconds to the last op's finish; infinite if an op cannot run where it is.
        start: (num_ops,) seconds.
        finish: (num_ops,) seconds; later than the start by what the op takes, and by what its
            device sends and receives meanwhile.
        peak_memory: (num_devices,) bytes.
        transfers: what went from device to device.
        feasible: whether every op can run where it is and no device's peak exceeds its memory.
    """

    devices: Ints
    step_time: float
    start: Floats
    finish: Floats
    peak_memory: Ints
    transfers: Transfers
    feasible: bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return _equal(self, other)

    __hash__ = None  # type: ignore[assignment]


def _equal(one: object, other: object) -> bool:
    """Whether all arrays are, those of the dataclasses in them included."""
    return all(
        _equal(value, vars(other)[name])
        if is_dataclass(value)
        else np.array_equal(value, vars(other)[name])
        for name, value in vars(one).items()
    )


def memory_over_time(problem: PlacementProblem, schedule: Schedule) -> tuple[Floats, Ints]:
    """How much memory each device has in use, from instant to instant (rule 6 of the semantics).

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
