"""`placeto calibrate`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction, arg

from placeto.cli.arguments import Json, RealCluster
from placeto.cli.output import check_outputs, note, print_result, progress
from placeto.cli.sources import extracting, torch_source
from placeto.cluster import load_cluster, save_cluster
from placeto.extraction.source import Source
from placeto.graph import load_graph, save_graph
from placeto.measurement import Effort, find_runnable
from placeto.measurement.calibration import (
    calibrate,
    calibrated_name,
    file_names,
    save_calibration,
)
from placeto.reports.devices import calibration_tables, torch_calibration_tables
from placeto.reports.rows import channel_rows
from placeto.support.errors import PlacetoError
from placeto.support.units import format_seconds

WITHIN = 0.05  # devices that are equal differ by as much
PATIENCE_SECONDS = 5.0  # what is measured is to be worth more than one run of a placement


@dataclass(frozen=True, kw_only=True)
class Calibrate:
    """Measures what a simulation has to know of real devices and of graphs on them.

    Writes CLUSTER-calibrated.yaml, and GRAPH.json.gz with op times of its devices' kinds. With
    --torch these are of a PyTorch module, for `placeto place --pipeline` and device maps.

    Attributes:
        graph: A bundled graph (see `placeto list`) or a graph file; can be given several times.
        torch: A PyTorch module in a graph's place, such as net.py:make?batch=16&microbatches=8; can
            be given several times, say with other microbatches: then all of them run in turn. The
            cluster is by default what `placeto detect` finds.
        device: Of --torch, the only device whose op times are measured, such as cuda:0; by default
            the first of each kind.
        threads: Of --torch, how many threads a process has on the CPU; torchrun gives it one.
        output: Folder for the files.
        warm_up: Steps of each graph on each device before those that count.
        steps: Steps that count.
        traces: Steps that are traced, for op times.
        deadline: Seconds after which a graph on a device is given up.
        keep_channels: Leave the cluster's channels as they are, such as those of a calibration
            before; only graphs are measured.
    """

    cluster: RealCluster | None = None
    torch: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="FILE.py:FUNCTION")]]
    device: str | None = None
    threads: int | None = None
    graph: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="GRAPH")]]
    output: Annotated[str, arg(aliases=["-o"], metavar="DIR")]
    warm_up: int = Effort.warm_up
    steps: int = 9
    traces: int = 5
    deadline: float = Effort.deadline_seconds
    keep_channels: bool = False
    json: Json = False


def run(arguments: Calibrate) -> int:
    """Measures, writes the files, and prints what was found."""
    if arguments.torch:
        return _torch(arguments)
    for option, value in {"--device": arguments.device, "--threads": arguments.threads}.items():
        if value is not None:
            raise PlacetoError(f"calibrate: {option} goes with --torch FILE.py:FUNCTION")
    if arguments.cluster is None:
        raise PlacetoError("calibrate: no cluster; name one, such as --cluster local-2")
    if not arguments.graph:
        raise PlacetoError("calibrate: no graph; name at least one, such as --graph inception_v3")
    if arguments.traces < 1:
        raise PlacetoError(f"traces is {arguments.traces}, expected a number from 1")
    folder = Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise PlacetoError(f"{folder}: cannot be written: not a folder")
    effort = Effort(
        arguments.warm_up,
        arguments.steps,
        deadline_seconds=arguments.deadline,
        patience_seconds=PATIENCE_SECONDS,
    )
    cluster = load_cluster(arguments.cluster)
    graphs = [load_graph(source) for source in arguments.graph]
    names = [graph.name for graph in graphs]
    files = file_names(calibrated_name(cluster), names)
    for name, file in zip(names, files[1:], strict=True):
        if files.count(file) > 1:
            raise PlacetoError(
                f"calibrate: two graphs are called {name!r}, or would both be {file}; give each "
                "once"
            )
    check_outputs(
        *(str(folder / name) for name in (files if folder.is_dir() else [""])),
        inputs=(*arguments.graph, arguments.cluster),
    )
    with progress(f"calibrating {cluster.name}") as report:
        pairs = []
        for graph in graphs:
            report(f"finding the GraphDef of {graph.name}")
            pairs.append((graph, find_runnable(graph)))
        calibration = calibrate(
            cluster,
            pairs,
            effort,
            arguments.traces,
            report,
            keep_channels=arguments.keep_channels,
        )
    paths = save_calibration(calibration, [runnable for _, runnable in pairs], folder)
    cluster, launches = calibration.cluster, calibration.launches
    document = {
        "cluster": cluster.name,
        "source": cluster.source,
        "devices": [
            {"device": device.name, "kind": device.kind, **asdict(launches[device.kind])}
            for device in cluster.devices
        ],
        "channels": channel_rows(cluster, calibration.errors),
        "graphs": calibration.checks,
        "files": [str(path) for path in paths],
    }
    print_result(arguments.json, document, calibration_tables(calibration))
    for check in calibration.checks:
        predicted, again = check["predicted"], check["again"]
        if predicted is not None and abs(predicted / again - 1) > WITHIN:
            note(
                f"warning: {check['graph']} on {check['device']} is predicted to take "
                f"{format_seconds(predicted)}, but took {format_seconds(again)}; are the devices "
                f"of its kind equal?"
            )
    note(f"the cluster is in {paths[0]}, graphs are in {', '.join(map(str, paths[1:]))}")
    return 0


def _torch(arguments: Calibrate) -> int:
    """Measures PyTorch modules' ops, and transfers between the devices that they may be on."""
    if arguments.graph:
        raise PlacetoError("calibrate: --torch goes without --graph: it makes the graph")
    if arguments.threads is not None and arguments.threads < 1:
        raise PlacetoError(f"threads is {arguments.threads}, expected a number from 1")
    sources, folder = [torch_source(text) for text in arguments.torch], Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise PlacetoError(f"{folder}: cannot be written: not a folder")
    from placeto.extraction.pytorch.source import trace_module
    from placeto.measurement.pytorch.calibrate import calibrate_torch
    from placeto.measurement.pytorch.detect import detect_cluster

    if arguments.cluster is None:
        cluster = detect_cluster("detected")
    else:
        cluster = load_cluster(arguments.cluster)
    names = file_names(calibrated_name(cluster), _torch_names(sources))
    check_outputs(*(str(folder / name) for name in (names if folder.is_dir() else [""])))
    with extracting(f"calibrating {cluster.name}", interval_seconds=0) as report:
        found = calibrate_torch(
            [trace_module(source, report) for source in sources],
            cluster,
            report,
            arguments.device,
            arguments.threads or 1,
            keep_channels=arguments.keep_channels,
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlacetoError(f"{folder}: cannot be written: {error.strerror}") from error
    paths = [folder / name for name in names]
    for graph, path in zip(found.graphs, paths[1:], strict=True):
        save_graph(graph, path)
    save_cluster(found.cluster, paths[0])
    document = {
        "cluster": found.cluster.name,
        "source": found.cluster.source,
        "channels": channel_rows(found.cluster, found.errors),
        "graphs": [graph.name for graph in found.graphs],
        "checks": [asdict(check) for check in found.checks],
        "files": [str(path) for path in paths],
    }
    print_result(arguments.json, document, torch_calibration_tables(found))
    for check in found.checks:
        if check.not_measured:
            which = ", ".join(f"{count} {kind}" for kind, count in check.not_measured.items())
            note(
                f"warning: there is no kernel on {check.device} for {which}: these ops take as "
                "long by their bytes as the others do"
            )
    what, graphs = "graphs are" if paths[2:] else "the graph is", ", ".join(map(str, paths[1:]))
    note(f"the cluster is in {paths[0]}, {what} in {graphs}")
    return 0


def _torch_names(sources: Sequence[Source]) -> list[str]:
    """What the graphs of modules are called in files: those of one function by microbatches.

    Raises:
        PlacetoError: two are alike in both.
    """
    names = [source.target for source in sources]
    counts = [source.options.get("microbatches", "1") for source in sources]
    found = [
        f"{name}-{count}" if names.count(name) > 1 else name
        for name, count in zip(names, counts, strict=True)
    ]
    for name, source in zip(found, sources, strict=True):
        if found.count(name) > 1:
            raise PlacetoError(
                f"calibrate: {source.text}: another graph would be in {name}.json.gz, too; give "
                "each function once with as many microbatches"
            )
    return found
