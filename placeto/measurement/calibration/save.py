"""The files of a calibration."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from placeto.cluster import save_cluster
from placeto.graph import save_graph
from placeto.measurement.calibration.calibrate import Calibration
from placeto.measurement.runnable import Runnable
from placeto.support.errors import PlacetoError

_GRAPH = ".json.gz"


def file_names(cluster: str, graphs: Sequence[str]) -> list[str]:
    """The names of the cluster file and of the graph files, from those of what is in them."""
    stems = [name.replace("/", "_") for name in (cluster, *graphs)]
    return [f"{stems[0]}.yaml", *(f"{stem}{_GRAPH}" for stem in stems[1:])]


def save_calibration(
    calibration: Calibration, runnables: Sequence[Runnable], folder: str | Path
) -> list[Path]:
    """Writes the cluster file, and each graph with its GraphDef beside it.

    All files are written before the first of them gets its name; the cluster file is the last. The
    folder is made if it is not there. Returned are the cluster file and the graph files.

    Raises:
        PlacetoError: they cannot be written.
    """
    folder = Path(folder)
    graphs = calibration.graphs
    names = file_names(calibration.cluster.name, [graph.name for graph in graphs])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".calibration.") as staging:
            stage = Path(staging)
            save_cluster(calibration.cluster, stage / names[0])
            for graph, name, runnable in zip(graphs, names[1:], runnables, strict=True):
                stem = name.removesuffix(_GRAPH)
                beside = f"{stem}.graphdef{'.gz' if runnable.path.suffix == '.gz' else ''}"
                shutil.copyfile(runnable.path, stage / beside)
                run = {**graph.meta["run"], "graph_def": beside}
                save_graph(replace(graph, meta={**graph.meta, "run": run}), stage / name)
            for path in sorted(stage.iterdir(), key=lambda path: path.name == names[0]):
                os.replace(path, folder / path.name)
    except OSError as error:
        raise PlacetoError(f"{folder}: cannot be written: {error.strerror}") from error
    return [folder / name for name in names]
