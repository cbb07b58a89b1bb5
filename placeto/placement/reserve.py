"""Memory of devices that placements are to leave free."""

import re
from dataclasses import dataclass, replace

from placeto.cluster import Cluster
from placeto.support.errors import PlacetoError
from placeto.support.units import format_bytes, parse_quantity

_SHARE = re.compile(r"(\d+\.?\d*|\.\d+)(%?)")


@dataclass(frozen=True)
class Reserve:
    """What is left free of each device's memory.

    Attributes:
        share: of the memory, from 0, below 1.
        num_bytes: beside that.
    """

    share: float = 0.0
    num_bytes: int = 0

    def __str__(self) -> str:
        """In words, such as 5% or 1 GiB."""
        return format_bytes(self.num_bytes) if self.num_bytes else f"{100 * self.share:.4g}%"

    def left(self, memory_bytes: int) -> int:
        """Bytes of a memory that may be used."""
        return int((1 - self.share) * memory_bytes) - self.num_bytes


def parse_reserve(text: str) -> Reserve:
    """Reads `5%`, a share such as `0.05`, or bytes such as `1GiB`.

    Raises:
        PlacetoError: none of these, or all of the memory.
    """
    if match := _SHARE.fullmatch(text.strip()):
        share = float(match[1]) / (100 if match[2] else 1)
        if share < 1:
            return Reserve(share=share)
    elif text.strip()[-1:].isalpha():
        return Reserve(num_bytes=int(parse_quantity(text, "bytes", "reserve")))
    raise PlacetoError(
        f"reserve is {text}, expected a share from 0, below 1, such as 0.05 or 5%, or bytes, such "
        "as 1GiB"
    )


def reserved(cluster: Cluster, text: str | None) -> Cluster:
    """The cluster whose devices have that much less memory.

    Args:
        cluster: the devices.
        text: see `parse_reserve`; None for nothing.

    Raises:
        PlacetoError: see `parse_reserve`; a device has no more than that.
    """
    if text is None:
        return cluster
    reserve = parse_reserve(text)
    for device in cluster.devices:
        if reserve.left(device.memory_bytes) <= 0:
            raise PlacetoError(
                f"reserve is {text}, and device {device.name!r} of cluster {cluster.name!r} has "
                f"{format_bytes(device.memory_bytes)}; leave some of it"
            )
    devices = tuple(
        replace(device, memory_bytes=reserve.left(device.memory_bytes))
        for device in cluster.devices
    )
    return replace(cluster, devices=devices)
