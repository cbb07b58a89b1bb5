"""Training steps calibrated on `local-2`: extracted and measured once, kept in a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.grouped import by_rules
from placeto import load_cluster, load_graph, save_graph
from placeto.cli import main as placeto
from placeto.grouping import Grouping
from placeto.measurement import Runnable, find_runnable
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError

CLUSTER = "local-2"
CALIBRATED = f"{CLUSTER}-calibrated"
GROUPS = 128  # at most, as in the results that are committed


def prepare(sources: Mapping[str, str], options: Sequence[str], folder: Path) -> Path:
    """Extracts and calibrates what is not there yet.

    Args:
        sources: name -> what `placeto extract` takes.
        options: of `placeto calibrate`.
        folder: where all of it is kept.

    Returns:
        The folder of the calibrated cluster and graphs.

    Raises:
        PlacetoError: a command ended otherwise than it should.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        path = folder / f"{name}.json.gz"
        if not path.exists():
            extracted = folder / f"extracted_{name}.json.gz"
            _command("extract", source, "-o", str(extracted))
            save_graph(replace(load_graph(extracted), name=name), path)
            extracted.unlink()
    calibrated = folder / "calibrated"
    if not cluster_file(calibrated).exists():
        graphs = [word for name in sources for word in ("--graph", str(folder / f"{name}.json.gz"))]
        _command("calibrate", "--cluster", CLUSTER, *graphs, "-o", str(calibrated), *options)
    return calibrated


def cluster_file(calibrated: Path) -> Path:
    """The calibrated cluster; the last file of a calibration that gets its name."""
    return calibrated / f"{CALIBRATED}.yaml"


def load(
    calibrated: Path, name: str, grouping: Grouping | None = None
) -> tuple[PlacementProblem, Runnable]:
    """A calibrated graph on the calibrated cluster, and its GraphDef."""
    graph = load_graph(calibrated / f"{name}.json.gz")
    if grouping is None:
        grouping = by_rules(graph, GROUPS)
    problem = PlacementProblem(graph, load_cluster(cluster_file(calibrated)), grouping)
    return problem, find_runnable(graph)


def _command(*words: str) -> None:
    if status := placeto(list(words)):
        raise PlacetoError(f"placeto {' '.join(words)}: exit status {status}")
