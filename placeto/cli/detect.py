"""`placeto detect`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from placeto.cli.arguments import File, Json, Reserved
from placeto.cli.output import check_outputs, note, print_result
from placeto.cluster import save_cluster
from placeto.placement.reserve import parse_reserve
from placeto.reports.devices import detected_table
from placeto.support.errors import PlacetoError


@dataclass(frozen=True, kw_only=True)
class Detect:
    """Finds the devices of this machine that PyTorch computes on, and writes a cluster file.

    Attributes:
        output: Cluster file to write, .yaml.
        name: What the cluster is called.
        processes: How many processes share the CPU, on a machine without a GPU.
        disk: A folder for weights that do not fit anywhere else: the cluster is for placeto place
            --device-map, and has the disk as a device. How fast it is read is measured.
        without_cpu: The GPUs alone: then a device map puts nothing on the CPU.
    """

    output: Annotated[str, arg(aliases=["-o"], metavar="FILE")]
    name: str = "my-box"
    processes: int = 1
    reserve: Reserved = "5%"
    disk: File = None
    without_cpu: bool = False
    json: Json = False


def run(arguments: Detect) -> int:
    """Finds them and writes the file."""
    if not arguments.output.endswith((".yaml", ".yml")):
        raise PlacetoError(f"{arguments.output}: a cluster file's name ends in .yaml")
    check_outputs(arguments.output)
    from placeto.measurement.pytorch.detect import detect_cluster

    cluster = detect_cluster(
        arguments.name,
        arguments.processes,
        parse_reserve(arguments.reserve),
        None if arguments.disk is None else Path(arguments.disk),
        cpu=not arguments.without_cpu,
    )
    save_cluster(cluster, arguments.output)
    document = {
        "cluster": cluster.name,
        "source": cluster.source,
        "devices": [asdict(device) for device in cluster.devices],
        "channels": len(cluster.channels),
        "output": arguments.output,
    }
    print_result(arguments.json, document, [detected_table(cluster)])
    note(f"the cluster is in {arguments.output}; placeto calibrate --torch measures it")
    return 0
