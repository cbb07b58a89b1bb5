"""Clusters: devices that run ops, and channels that carry tensors between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import yaml
from msgspec import Meta, field
from msgspec.structs import asdict
from numpy.typing import NDArray

from placeto.support.bundle import find
from placeto.support.documents import Document, from_value
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, write_bytes
from placeto.support.launch import (
    Launch,
    TensorFlowDevice,
    launch_document,
    read_launch,
    tensorflow_devices,
)
from placeto.support.units import parse_quantity

_T = TypeVar("_T")
# What PyYAML's constructors let through for a malformed date, an empty `!!int`, deep nesting, …
_CONSTRUCTOR_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Device:
    """Something that runs one op at a time.

    Attributes:
        name: unique in the cluster.
        kind: which column of a graph's `op_seconds` holds for it, such as `k80`.
        memory_bytes: what the peak memory of a placement must not exceed.
        launch_overhead_seconds: how long an op of non-zero duration holds the device after it.
        tensorflow: TensorFlow's name of the device, for real runs.
        cores: how many cores its process is pinned to in real runs, for each of its devices; None
            for all that there are.
        torch: PyTorch's name of the device, such as `cuda:0`, where it is not `name`.
    """

    name: str
    kind: str
    memory_bytes: int
    launch_overhead_seconds: float = 0.0
    tensorflow: str | None = None
    cores: int | None = None
    torch: str | None = None

    @property
    def likeness(self) -> tuple[str, int, float]:
        """What is equal of devices that are alike to a placement, but for their channels."""
        return self.kind, self.memory_bytes, self.launch_overhead_seconds


@dataclass(frozen=True)
class Link:
    """What several channels share, one transfer at a time: a bus, a host's way out to the network.

    Attributes:
        name: unique in the cluster.
        bandwidth: bytes a second.
        latency_seconds: from a byte's start to its arrival.
    """

    name: str
    bandwidth: float
    latency_seconds: float = 0.0


@dataclass(frozen=True)
class EndCost:
    """What a transfer costs the device at one of its ends, if it has so many bytes or more.

    Attributes:
        from_bytes: the least size that this is of.
        seconds: of any such transfer.
        seconds_per_byte: of all of its bytes.
    """

    from_bytes: float
    seconds: float = 0.0
    seconds_per_byte: float = 0.0


def end_seconds(costs: Sequence[EndCost], size: float) -> float:
    """Seconds of a transfer of so many bytes, by the last piece that is of its size."""
    of_size = [cost for cost in costs if size >= cost.from_bytes]
    return of_size[-1].seconds + of_size[-1].seconds_per_byte * size if of_size else 0.0


@dataclass(frozen=True)
class Channel:
    """What carries tensors from some devices to some others, one transfer at a time.

    Attributes:
        name: unique in the cluster.
        sources: device names.
        destinations: device names; every pair of different devices is served.
        bandwidth: bytes a second.
        latency_seconds: from the last byte sent to the tensor's arrival.
        overhead_seconds: how long a transfer holds the channel after its last byte.
        multicast: whether one transfer serves every destination of a tensor.
        path: the links that a transfer takes, by name. A channel with a path has no figures of its
            own: in a cluster they are the path's narrowest bandwidth, all its latency, and none.
        send: what a transfer costs the device that it comes from, by ascending sizes.
        receive: likewise, the device that it goes to.
    """

    name: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    bandwidth: float = 0.0
    latency_seconds: float = 0.0
    overhead_seconds: float = 0.0
    multicast: bool = False
    path: tuple[str, ...] = ()
    send: tuple[EndCost, ...] = ()
    receive: tuple[EndCost, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """Devices and the channels between them.

    Attributes:
        name: what the cluster is called in tables.
        devices: in the order of their numbers.
        channels: each ordered pair of different devices is served by exactly one.
        source: where the figures come from.
        launch: the worker processes of real runs; None for one process with all devices.
        links: what the paths of channels are made of.

    Raises:
        PlacetoError: no device, repeated names, a channel that names an unknown device or link, a
            pair that no channel serves or that two serve, a bandwidth of 0, a negative or infinite
            time, a path beside figures, costs of ends that are not by ascending sizes or are of a
            multicast channel, a device that the launch does not have.
    """

    name: str
    devices: tuple[Device, ...]
    channels: tuple[Channel, ...] = ()
    source: str = ""
    launch: Launch | None = None
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        where = f"cluster {self.name!r}"
        if not self.devices:
            raise PlacetoError(f"{where}: has no devices")
        _check_unique([device.name for device in self.devices], f"{where}: device")
        _check_unique([channel.name for channel in self.channels], f"{where}: channel")
        _check_unique([link.name for link in self.links], f"{where}: link")
        for device in self.devices:
            place = f"{where}: device {device.name!r}"
            _check_finite(device.memory_bytes, f"{place}: memory_bytes")
            _check_finite(device.launch_overhead_seconds, f"{place}: launch_overhead_seconds")
            if device.cores is not None and device.cores < 1:
                raise PlacetoError(f"{place}: cores is {device.cores}, expected at least 1")
        for link in self.links:
            place = f"{where}: link {link.name!r}"
            _check_finite(link.latency_seconds, f"{place}: latency_seconds")
            _check_bandwidth(link.bandwidth, place)
        channels = tuple(self._with_figures(channel) for channel in self.channels)
        object.__setattr__(self, "channels", channels)
        for channel in self.channels:
            place = f"{where}: channel {channel.name!r}"
            _check_finite(channel.latency_seconds, f"{place}: latency_seconds")
            _check_finite(channel.overhead_seconds, f"{place}: overhead_seconds")
            for name in (*channel.sources, *channel.destinations):
                self._index(name, place)
            _check_bandwidth(channel.bandwidth, place, " or a path of links")
            for end in ("send", "receive"):
                _check_costs(getattr(channel, end), channel.multicast, f"{place}: {end}")
        missing = np.argwhere(self.channel_between < 0)
        for source, destination in missing[missing[:, 0] != missing[:, 1]]:
            raise PlacetoError(
                f"{where}: no channel leads from {self.devices[source].name!r} to "
                f"{self.devices[destination].name!r}; every ordered pair needs exactly one"
            )
        if self.launch is not None:
            self.tensorflow_devices()

    def tensorflow_devices(self) -> tuple[TensorFlowDevice, ...]:
        """(num_devices,) what TensorFlow calls each device, in full.

        Raises:
            PlacetoError: a device without such a name, with another's, or of a process that the
                cluster's launch does not have.
        """
        names = [device.name for device in self.devices]
        theirs = [device.tensorflow for device in self.devices]
        try:
            return tensorflow_devices(self.launch, names, theirs)
        except PlacetoError as error:
            raise PlacetoError(f"cluster {self.name!r}: {error}") from error

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self.devices)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the devices, each once, in the order they first appear."""
        return tuple(dict.fromkeys(device.kind for device in self.devices))

    @cached_property
    def channel_between(self) -> NDArray[np.int64]:
        """(num_devices, num_devices) channel number from row to column; -1 on the diagonal."""
        between = np.full((self.num_devices, self.num_devices), -1, dtype=np.int64)
        for number, channel in enumerate(self.channels):
            for source, destination in product(channel.sources, channel.destinations):
                if source == destination:
                    continue
                pair = (self._index(source, ""), self._index(destination, ""))
                if between[pair] >= 0:
                    other = self.channels[between[pair]].name
                    raise PlacetoError(
                        f"cluster {self.name!r}: both {other!r} and {channel.name!r} lead from "
                        f"{source!r} to {destination!r}; every ordered pair needs exactly one"
                    )
                between[pair] = number
        return between

    def _with_figures(self, channel: Channel) -> Channel:
        """The channel, with those of its path if it has one."""
        if not channel.path:
            return channel
        place = f"cluster {self.name!r}: channel {channel.name!r}"
        _check_unique(channel.path, f"{place}: path: link")
        links = {link.name: link for link in self.links}
        for name in channel.path:
            if name not in links:
                known = ", ".join(links) or "none"
                raise PlacetoError(f"{place}: path: there is no link {name!r}; links: {known}")
        found = replace(
            channel,
            bandwidth=min(links[name].bandwidth for name in channel.path),
            latency_seconds=sum(links[name].latency_seconds for name in channel.path),
        )
        given = channel.bandwidth, channel.latency_seconds
        if channel.overhead_seconds or (
            any(given) and given != (found.bandwidth, found.latency_seconds)
        ):
            raise PlacetoError(
                f"{place}: has a path and figures of its own; expected none of these, or its links'"
            )
        return found

    def device_index(self, name: str | int) -> int:
        """The number of a device, by name or by number.

        Raises:
            PlacetoError: there is no such device.
        """
        text = str(name)
        named = any(device.name == text for device in self.devices)
        if not named and text in map(str, range(self.num_devices)):
            return int(text)
        return self._index(text, f"cluster {self.name!r}")

    def _index(self, name: str, where: str) -> int:
        for index, device in enumerate(self.devices):
            if device.name == name:
                return index
        known = ", ".join(device.name for device in self.devices)
        raise PlacetoError(f"{where}: there is no device {name!r}; devices: {known}")


Quantity = Annotated[
    int | float | str,
    Meta(description="A number in the SI unit, or one with its unit: 12GiB, 7.6GB/s, 5.7us."),
]


class DeviceDocument(Document, forbid_unknown_fields=True):
    """A device of a cluster file, see `Device`."""

    name: str
    kind: str
    memory_bytes: Quantity = field(name="memory")
    launch_overhead_seconds: Quantity = field(name="launch_overhead", default=0)
    tensorflow: str | None = None
    cores: Annotated[int, Meta(ge=1)] | None = None
    torch: str | None = None


class LinkDocument(Document, forbid_unknown_fields=True):
    """A link of a cluster file, see `Link`."""

    name: str
    bandwidth: Quantity
    latency_seconds: Quantity = field(name="latency", default=0)


class EndCostDocument(Document, forbid_unknown_fields=True):
    """A piece of what a transfer costs the device at one of its ends, see `EndCost`."""

    from_bytes: Quantity = field(name="from")
    seconds: Quantity = 0
    seconds_per_byte: Quantity = field(name="per_byte", default=0)


class ChannelDocument(Document, forbid_unknown_fields=True):
    """A channel of a cluster file, see `Channel`."""

    name: str
    sources: tuple[str, ...] = field(name="from")
    destinations: tuple[str, ...] = field(name="to")
    bandwidth: Quantity = 0
    latency_seconds: Quantity = field(name="latency", default=0)
    overhead_seconds: Quantity = field(name="overhead", default=0)
    multicast: bool = False
    path: tuple[str, ...] = ()
    send: tuple[EndCostDocument, ...] = ()
    receive: tuple[EndCostDocument, ...] = ()


_UNITS = {
    "memory_bytes": "bytes",
    "from_bytes": "bytes",
    "bandwidth": "bytes/second",
    "launch_overhead_seconds": "seconds",
    "latency_seconds": "seconds",
    "overhead_seconds": "seconds",
    "seconds": "seconds",
    "seconds_per_byte": "seconds",
}


class ClusterDocument(Document, forbid_unknown_fields=True):
    """A cluster file, see `Cluster`."""

    name: str
    devices: list[DeviceDocument]
    links: list[LinkDocument] | None = None
    channels: list[ChannelDocument] | None = None
    source: str = ""
    launch: str | dict[str, list[str]] | None = None


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, but for keys that stand twice, of which it would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping of a document."""
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key.value, str)]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key[1]!r} stands twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def load_cluster(source: str | Path) -> Cluster:
    """Reads a preset by name, or a cluster file by path.

    Raises:
        PlacetoError: no such preset or file, or it is not a valid cluster file.
    """
    path = find("clusters", (".yaml",), source)
    try:
        document = yaml.load(read_bytes(path).decode(), _Loader)
    except (yaml.YAMLError, *_CONSTRUCTOR_ERRORS) as error:
        line = " ".join(str(error).split())
        raise PlacetoError(f"{source}: not valid YAML: {line}") from error
    return from_document(document, str(source))


def save_cluster(cluster: Cluster, path: str | Path) -> None:
    """Writes a cluster file, quantities in SI units."""
    text = yaml.safe_dump(to_document(cluster), sort_keys=False, allow_unicode=True)
    write_bytes(path, text.encode())


def to_document(cluster: Cluster) -> dict[str, Any]:
    """The cluster as the document of a cluster file, quantities as numbers in SI units."""
    document: dict[str, Any] = {"name": cluster.name, "source": cluster.source}
    if cluster.launch is not None:
        document["launch"] = launch_document(cluster.launch)
    document["devices"] = [_entry(DeviceDocument, device) for device in cluster.devices]
    if cluster.links:
        document["links"] = [_entry(LinkDocument, link) for link in cluster.links]
    document["channels"] = [_channel_entry(channel) for channel in cluster.channels]
    return document


def _channel_entry(channel: Channel) -> dict[str, Any]:
    """A channel as a cluster file has it: its figures or its path, and what the ends cost if so."""
    entry = _entry(ChannelDocument, channel)
    for end in ("send", "receive"):
        entry[end] = [_entry(EndCostDocument, cost) for cost in getattr(channel, end)]
    figures = ("bandwidth", "latency", "overhead") if channel.path else ()
    empty = [key for key in ("path", "send", "receive") if not entry[key]]
    return {key: value for key, value in entry.items() if key not in (*figures, *empty)}


def _entry(kind: type[Document], value: object) -> dict[str, Any]:
    """A device, a link or a channel as a cluster file has it, without what is None."""
    values = [getattr(value, name) for name in kind.__struct_fields__]
    pairs = zip(kind.__struct_encode_fields__, values, strict=True)
    return {key: list(v) if isinstance(v, tuple) else v for key, v in pairs if v is not None}


def from_document(document: Any, where: str) -> Cluster:
    """The cluster of what a YAML reader returned, called `where` in error messages.

    Raises:
        PlacetoError: a key is missing, unknown, or of the wrong type; see `Cluster`.
    """
    read = from_value(document, ClusterDocument, where)
    devices = _read(Device, read.devices, f"{where}: devices")
    links = _read(Link, read.links or (), f"{where}: links")
    channels = _read(Channel, read.channels or (), f"{where}: channels")
    launch = read_launch(read.launch, f"{where}: launch")
    try:
        return Cluster(read.name, devices, channels, read.source, launch, links)
    except PlacetoError as error:
        raise PlacetoError(f"{where}: {error}") from error


def _read(kind: Callable[..., _T], entries: Sequence[Document], where: str) -> tuple[_T, ...]:
    """What entries of a cluster file are of, such as channels: quantities in SI units."""
    found = []
    for index, entry in enumerate(entries):
        place, values = f"{where}[{index}]", asdict(entry)
        for name, key in zip(list(values), entry.__struct_encode_fields__, strict=True):
            if name in ("send", "receive"):
                values[name] = _read(EndCost, getattr(entry, name), f"{place}: {key}")
            if name in _UNITS:
                values[name] = parse_quantity(values[name], _UNITS[name], f"{place}: {key}")
            if name == "memory_bytes":
                if values[name] >= 2**62:
                    raise PlacetoError(
                        f"{place}: memory is {getattr(entry, name)!r}, "
                        "expected less than 2**62 bytes"
                    )
                values[name] = int(values[name])
        found.append(kind(**values))
    return tuple(found)


def _check_finite(value: float, where: str) -> None:
    if not 0 <= value < np.inf:
        raise PlacetoError(f"{where} is {value}, expected a finite number from 0")


def _check_bandwidth(value: float, where: str, otherwise: str = "") -> None:
    if not 0 < value < np.inf:
        raise PlacetoError(
            f"{where}: bandwidth is {value}, expected a finite number of bytes a second above 0"
            f"{otherwise}"
        )


def _check_costs(costs: Sequence[EndCost], multicast: bool, where: str) -> None:
    if costs and multicast:
        raise PlacetoError(f"{where}: a multicast channel costs its ends nothing")
    for cost in costs:
        for name in ("from_bytes", "seconds", "seconds_per_byte"):
            _check_finite(getattr(cost, name), f"{where}: {name}")
    for before, cost in pairwise(costs):
        if cost.from_bytes <= before.from_bytes:
            raise PlacetoError(
                f"{where}: sizes go from {before.from_bytes:g} to {cost.from_bytes:g} bytes, "
                "expected ascending ones"
            )


def _check_unique(names: Sequence[str], where: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise PlacetoError(f"{where} name {name!r} stands twice; names must be unique")
