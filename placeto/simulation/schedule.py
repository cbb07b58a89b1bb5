"""What a simulation or a measured run says happened."""

from dataclasses import dataclass

import numpy as np

from placeto.support.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfers of one step, in the order in which they were requested.

    Attributes:
        tensor: (num_transfers,) what is carried.
        channel: (num_transfers,) what carries it.
        destinations: (num_transfers, num_devices) where it is carried to; several on a multicast
            channel, else one.
        request: (num_transfers,) seconds, when the producer finished.
        start: (num_transfers,) seconds, when the channel took it up.
        sent: (num_transfers,) seconds, when its last byte had left.
        arrival: (num_transfers,) seconds, when it was there.
    """

    tensor: Ints
    channel: Ints
    destinations: Bools
    request: Floats
    start: Floats
    sent: Floats
    arrival: Floats

    def __len__(self) -> int:
        return len(self.tensor)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Start and finish of each op, transfers, and peak memory of one step.

    Attributes:
        devices: (num_groups,) the placement.
        step_time: seconds to the last op's finish; infinite if an op cannot run where it is.
        start: (num_ops,) seconds.
        finish: (num_ops,) seconds.
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
        return all(
            np.array_equal(mine[name], theirs[name])
            for mine, theirs in (
                (vars(self), vars(other)),
                (vars(self.transfers), vars(other.transfers)),
            )
            for name in mine
            if name != "transfers"
        )

    __hash__ = None  # type: ignore[assignment]
