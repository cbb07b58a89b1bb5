"""The devices that processes of one backend compute on: the GPUs, without the CPU beside them."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from placeto.cluster import Channel, Cluster
from placeto.placement.module_devices import STORES, torch_devices


def accelerators(cluster: Cluster) -> Cluster:
    """The cluster without the CPU and the disk where it has other devices; else without the disk.

    The processes of a pipeline or of data parallelism have one backend: NCCL on GPUs, gloo on CPUs.
    A CPU is a device of kind `cpu`, or one that PyTorch calls so.
    """
    names = torch_devices(cluster)
    for left_out in (STORES, ("disk",)):
        kept = tuple(
            device
            for device in cluster.devices
            if device.kind not in left_out and names.get(device.name) not in left_out
        )
        if len(kept) == cluster.num_devices:
            return cluster
        if kept:
            channels = channels_among(cluster.channels, {device.name for device in kept})
            return replace(cluster, devices=kept, channels=channels, launch=None)
    return cluster


def channels_among(channels: Sequence[Channel], names: Collection[str]) -> tuple[Channel, ...]:
    """What carries tensors from some devices, by name, to others of them."""
    return tuple(
        replace(channel, sources=sources, destinations=destinations)
        for channel in channels
        if (sources := tuple(name for name in channel.sources if name in names))
        and (destinations := tuple(name for name in channel.destinations if name in names))
        and (sources != destinations or len(sources) > 1)
    )
