"""Tables of devices: what was found of a machine, and what was measured of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from placeto.cluster import Cluster, end_seconds
from placeto.reports.tables import empty_table, format_ratio, format_share, format_time
from placeto.support.units import format_bytes

if TYPE_CHECKING:
    from placeto.measurement.calibration import Calibration
    from placeto.measurement.pytorch.calibrate import TorchCalibration

_SIZE = 2**20  # bytes of the tensor whose ends' costs are shown


def detected_table(cluster: Cluster) -> Table:
    """The devices of a machine, and how fast the fastest channel out of each is."""
    table = empty_table("", ["device", "kind", "memory", "to others"], left=("device", "kind"))
    for device in cluster.devices:
        ways = [each.bandwidth for each in cluster.channels if device.name in each.sources]
        fastest = f"{format_bytes(max(ways))}/s" if ways else "-"
        table.add_row(device.name, device.kind, format_bytes(device.memory_bytes), fastest)
    return table


def calibration_tables(calibration: "Calibration") -> list[Table]:
    """What was measured of a cluster: its devices, its channels if it has any, and graphs."""
    cluster = calibration.cluster
    columns = ["device", "kind", "overhead an op", "overhead a step"]
    devices = empty_table("", columns, left=("device", "kind"))
    for device in cluster.devices:
        took = calibration.launches[device.kind]
        overheads = map(format_time, (took.op_overhead, took.step_overhead))
        devices.add_row(device.name, device.kind, *overheads)
    graphs = empty_table(
        "",
        ["all ops of", "on", "step", "beside", "stretch", "predicted", "again"],
        left=("all ops of", "on"),
        caption="Beside: while all others run it, too. Stretch: of the kernels' times. Again: a "
        "step in turn with all others.",
    )
    for check in calibration.checks:
        graphs.add_row(
            check["graph"],
            check["device"],
            format_time(check["measured"]),
            format_time(check["beside"]),
            format_ratio(check["stretch"]),
            format_time(check["predicted"]),
            format_time(check["again"]),
        )
    return [devices, *_channel_tables(cluster, calibration.errors), graphs]


def torch_calibration_tables(calibration: "TorchCalibration") -> list[Table]:
    """What was measured of PyTorch modules' devices: channels if any were, and steps."""
    columns = ["graph", "M", "device", "kind", "step", "predicted", "alone", "ops not measured"]
    steps = empty_table(
        "",
        columns,
        left=("graph", "device", "kind"),
        caption="Step: all microbatches, while no other process computes; alone: its time then.",
    )
    for check in calibration.checks:
        times = map(format_time, (check.measured, check.predicted))
        alone = format_ratio(check.alone)
        which = check.graph, str(check.microbatches), check.device, check.kind
        steps.add_row(*which, *times, alone, str(sum(check.not_measured.values())))
    return [*_channel_tables(calibration.cluster, calibration.errors), steps]


def _channel_tables(cluster: Cluster, errors: Sequence[float]) -> list[Table]:
    """The channels that were measured; none if none were."""
    if not errors:
        return []
    channels = empty_table(
        "",
        ["channel", "bandwidth", "latency", "overhead", "off by", "send", "receive"],
        left=("channel",),
        caption=f"Send, receive: what a tensor of {format_bytes(_SIZE)} costs the devices.",
    )
    for channel, error in zip(cluster.channels, errors, strict=True):
        times = map(format_time, (channel.latency_seconds, channel.overhead_seconds))
        bandwidth = f"{format_bytes(channel.bandwidth)}/s"
        ends = [
            format_time(end_seconds(costs, _SIZE)) if costs else "-"
            for costs in (channel.send, channel.receive)
        ]
        channels.add_row(channel.name, bandwidth, *times, format_share(error), *ends)
    return [channels]
