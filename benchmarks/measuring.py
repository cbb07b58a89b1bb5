"""Studies of training steps that run on the two workers of `local-2`.

Steps are extracted and calibrated once. Everything is kept in a folder, and goes on where it was
stopped: extracted graphs, calibration, placements, and each run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.output import RESULTS, command_line, save
from placeto import load_cluster, load_graph, save_graph
from placeto.cli import main as placeto
from placeto.cluster import Cluster
from placeto.grouping import Grouping, coarsen, colocation_groups
from placeto.measurement import Effort, Runnable, find_runnable
from placeto.measurement.calibration.machine import machine
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError

CLUSTER = "local-2"
GROUPS = 128  # by the papers' rules, at most, as in the results that are committed


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        sources: name -> what `placeto extract` takes.
        calibration: options of `placeto calibrate`.
        searches: placer -> its seconds.
        rounds: runs of each placement.
        effort: of each run.
    """

    sources: dict[str, str]
    calibration: tuple[str, ...]
    searches: dict[str, float]
    rounds: int
    effort: Effort


@dataclass(frozen=True)
class Case:
    """A training step that is measured.

    Attributes:
        problem: the graph on the calibrated cluster.
        runnable: its GraphDef.
        effort: of each run.
    """

    problem: PlacementProblem
    runnable: Runnable
    effort: Effort


@dataclass(frozen=True)
class Study:
    """A plan, the folder where all of it is kept, and the folder that the results go to."""

    plan: Plan
    folder: Path
    results: Path

    @property
    def calibrated(self) -> Path:
        """The folder of the calibrated cluster and graphs."""
        return self.folder / "calibrated"

    @property
    def cluster_file(self) -> Path:
        """The calibrated cluster; the last file of a calibration that gets its name."""
        return self.calibrated / f"{CLUSTER}-calibrated.yaml"

    def cluster(self) -> Cluster:
        """The calibrated cluster."""
        return load_cluster(self.cluster_file)

    def case(self, name: str, grouping: Grouping | None = None) -> Case:
        """A calibrated graph on the calibrated cluster."""
        graph = load_graph(self.calibrated / f"{name}.json.gz")
        if grouping is None:
            grouping = coarsen(graph, colocation_groups(graph), GROUPS)
        problem = PlacementProblem(graph, self.cluster(), grouping)
        return Case(problem, find_runnable(graph), self.plan.effort)

    def prepare(self) -> None:
        """Extracts and calibrates what is not there yet.

        Raises:
            PlacetoError: a command ended otherwise than it should.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        graphs = []
        for name, source in self.plan.sources.items():
            path = self.folder / f"{name}.json.gz"
            graphs += ["--graph", str(path)]
            if not path.exists():
                extracted = self.folder / f"extracted_{name}.json.gz"
                _command("extract", source, "-o", str(extracted))
                save_graph(replace(load_graph(extracted), name=name), path)
                extracted.unlink()
        if not self.cluster_file.exists():
            to = ("-o", str(self.calibrated), *self.plan.calibration)
            _command("calibrate", "--cluster", CLUSTER, *graphs, *to)


def run_study(
    name: str,
    full: Plan,
    quick: Plan,
    measure: Callable[[Study], dict[str, Any]],
    markdown: Callable[[dict[str, Any]], str],
) -> tuple[Path, dict[str, Any]]:
    """Runs a study as the command line says, and writes `NAME.json` and `NAME.md`.

    Args:
        name: the study's module.
        full: what is measured.
        quick: what is measured instead with `--quick`; results then go into the study's folder.
        measure: measures what is missing; what it returns goes into the results.
        markdown: the page, of the results' `graphs`.

    Returns:
        The folder of the results, and their `graphs`.
    """
    parser = command_line(name, "a small graph, minutes; results into the folder")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    wanted = parser.parse_args()
    folder = wanted.folder or Path("build") / (f"{name}-quick" if wanted.quick else name)
    study = Study(quick, folder, folder) if wanted.quick else Study(full, folder, RESULTS)
    study.prepare()
    document = {"command": f"python -m benchmarks.{name}", "machine": machine(), **measure(study)}
    save(name, document, markdown(document["graphs"]), study.results)
    return study.results, document["graphs"]


def _command(*words: str) -> None:
    if status := placeto(list(words)):
        raise PlacetoError(f"placeto {' '.join(words)}: exit status {status}")
