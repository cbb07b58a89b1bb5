"""The files of a calibration."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from placeto.cluster import save_cluster
from placeto.errors import PlacetoError
from placeto.graph import save_graph

if TYPE_CHECKING:
    from placeto.measurement.calibration.calibrate import Calibration
    from placeto.measurement.runnable import Runnable


def save_calibration(
    calibration: Calibration, runnables: Sequence[Runnable], folder: str | Path
) -> list[Path]:
    """Writes the cluster file, and each graph with its GraphDef beside it.

    All files are written before the first of them gets its name.

    Args:
        calibration: what was measured.
        runnables: one a graph of it.
        folder: made if it is not there.

    Returns:
        The cluster file and the graph files.

    Raises:
        PlacetoError: they cannot be written.
    """
    folder = Path(folder)
    names = [f"{calibration.cluster.name.replace('/', '_')}.yaml"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".calibration.") as staging:
            stage = Path(staging)
            save_cluster(calibration.cluster, stage / names[0])
            for graph, runnable in zip(calibration.graphs, runnables, strict=True):
                stem = graph.name.replace("/", "_")
                beside = f"{stem}.graphdef{'.gz' if runnable.path.suffix == '.gz' else ''}"
                shutil.copyfile(runnable.path, stage / beside)
                run = {**graph.meta["run"], "graph_def": beside}
                names.append(f"{stem}.json.gz")
                save_graph(replace(graph, meta={**graph.meta, "run": run}), stage / names[-1])
            for path in sorted(stage.iterdir()):
                os.replace(path, folder / path.name)
    except OSError as error:
        raise PlacetoError(f"{folder}: cannot be written: {error.strerror}") from error
    return [folder / name for name in names]
