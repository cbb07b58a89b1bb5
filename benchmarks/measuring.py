"""Studies of training steps that run on the two workers of `local-2`.

Steps are extracted and calibrated once; their placements run in turn, round after round. A folder
keeps it all, so that a study goes on where it was stopped.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from benchmarks.output import RESULTS, command_line, save, span
from benchmarks.processes import busy_seconds, processor_seconds
from placeto import load_cluster, load_graph, place
from placeto.cli import main as placeto
from placeto.cluster import Cluster
from placeto.grouping import Grouping, coarsen, colocation_groups
from placeto.heuristics.initial import single_devices
from placeto.measurement import Effort, Runnable, Runtime, RuntimeSettings, find_runnable
from placeto.measurement.calibration.machine import machine
from placeto.measurement.pace import CALM
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json, write_json

CLUSTER = "local-2"
CALIBRATED = f"calibrated/{CLUSTER}-calibrated.yaml"  # the last file that gets its name
GROUPS = 128  # by the papers' rules, at most, as in the results that are committed
# How placements are run: as `placeto measure` did before steps were kept in order, memory was kept
# and threads were to spare, and as it does.
BEFORE, NOW = "before", "now"
SETTINGS = {
    BEFORE: RuntimeSettings("none", keeps_memory=False, serving_threads=0),
    NOW: RuntimeSettings(),
}
# Of one core. A run that others took more of, or that was run by cores that were not as fast as
# ever, is made again; in all so many times as many runs as are wanted are made at most.
FOREIGN = 0.05
TRIES = 2
FEW_STEPS = Effort(warm_up=1, steps=3)
CANDIDATES = 3  # placements of a search that are run

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is measured; by default with little effort."""

    sources: dict[str, str]  # name -> what `placeto extract` takes
    searches: dict[str, float]  # placer -> its seconds
    calibration: tuple[str, ...] = ("--steps", "5", "--traces", "3")  # of `placeto calibrate`
    cluster: str = CLUSTER  # that is calibrated, or the file of one whose channels have been
    rounds: int = 2  # runs of each placement
    effort: Effort = FEW_STEPS  # of each run
    beside_single: bool = False  # whether each single device takes turns with it, step by step
    together: int = 1  # placements that take turns with each other


@dataclass(frozen=True)
class Case:
    """A training step on the calibrated cluster, and how it is run."""

    problem: PlacementProblem
    runnable: Runnable  # the graph's GraphDef
    effort: Effort  # of each run
    runtimes: Mapping[str, Runtime] = field(default_factory=dict)  # by `SETTINGS`, if there are any
    beside: tuple[Ints, ...] = ()  # what takes turns with every placement, step by step
    together: int = 1  # placements that take turns with each other

    def candidates(self, method: str, seconds: float) -> list[Ints]:
        """The fastest few placements that a placer came by, the best first."""
        placement = place(self.problem, method, seconds)
        return list(placement.candidates or (placement.devices,))[:CANDIDATES]

    def fastest(self, rows: Sequence[Row]) -> Row:
        """The row whose placement is the fastest when each is run once; that run is not in it."""
        list(alternate(self, rows, 1))
        return min(ran(rows), key=measured) | {"runs": [], "tries": 0}


@dataclass(frozen=True)
class Study:
    """A plan by its name, the folder where all of it is kept, and that of the results."""

    name: str
    plan: Plan
    folder: Path
    results: Path

    def prepare(self) -> None:
        """Extracts and calibrates what is not there yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        graphs: list[str | Path] = []
        for name, source in self.plan.sources.items():
            path = self.folder / f"{name}.json.gz"
            graphs += ["--graph", path]
            if not path.exists():
                _command("extract", source, "--name", name, "-o", path)
        if not (self.folder / CALIBRATED).exists():
            graphs += ["-o", self.folder / "calibrated", *self.plan.calibration]
            _command("calibrate", "--cluster", self.plan.cluster, *graphs)

    def cluster(self) -> Cluster:
        """The calibrated cluster."""
        return load_cluster(self.folder / CALIBRATED)

    def case(self, name: str, grouping: Grouping | None = None) -> Case:
        """A calibrated graph on the calibrated cluster; by default with the papers' groups."""
        graph = load_graph(self.folder / "calibrated" / f"{name}.json.gz")
        if grouping is None:
            grouping = coarsen(graph, colocation_groups(graph), GROUPS)
        problem = PlacementProblem(graph, self.cluster(), grouping)
        beside = tuple(single_devices(problem)) if self.plan.beside_single else ()
        together = self.plan.together
        return Case(problem, find_runnable(graph), self.plan.effort, {}, beside, together)

    def graphs(
        self,
        enter: Callable[[Plan, Case], list[Row]],
        predict: Callable[[Case, Row], Row] = lambda case, row: {},
        grouping: Grouping | None = None,
    ) -> dict[str, Any]:
        """Of each graph `source` and `rows`: placements, run in turn, with what is predicted.

        They are kept after each run; where none are kept, `enter` makes them.
        """
        found: dict[str, Any] = {}
        for name, source in self.plan.sources.items():
            case, kept = self.case(name, grouping), self.folder / f"{name}.{self.name}.json"
            with ExitStack() as stack:  # what nothing is run in is never started
                runtimes = {
                    key: stack.enter_context(Runtime(case.problem.cluster, settings))
                    for key, settings in SETTINGS.items()
                }
                case = replace(case, runtimes=runtimes)
                rows = read_json(kept)["rows"] if kept.exists() else enter(self.plan, case)
                write_json(kept, {"rows": rows})
                for _ in alternate(case, rows, self.plan.rounds):
                    write_json(kept, {"rows": rows})
            found[name] = {"source": source, "rows": [row | predict(case, row) for row in rows]}
        return found


def main(
    name: str,
    plans: tuple[Plan, Plan],
    measure: Callable[[Study], dict[str, Any]],
    markdown: Callable[[dict[str, Any]], str],
) -> tuple[Path, dict[str, Any]]:
    """Runs a study, the second plan with `--quick`, and writes `NAME.json` and `NAME.md`.

    Returns the folder of the results, and their `graphs`, of which `markdown` makes the page.
    """
    parser = command_line(name, "a small graph, minutes; results into the folder")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    wanted = parser.parse_args()
    folder = wanted.folder or Path("build") / (f"{name}-quick" if wanted.quick else name)
    study = Study(name, plans[wanted.quick], folder, folder if wanted.quick else RESULTS)
    study.prepare()
    document = {"machine": machine(), **measure(study)}
    save(name, document, markdown(document["graphs"]), study.results)
    return study.results, document["graphs"]


def alternate(case: Case, rows: Sequence[Row], rounds: int) -> Iterator[Row]:
    """Makes the `runs` that rows lack, one a round, in every other from the last to the first.

    Rounds go on, of rows of which runs were disturbed; what was disturbed most is left out then. A
    row is yielded after each run; `reason` is why it cannot be run. Rows of a case that has several
    `together` are all of one runtime.
    """
    for number in range(TRIES * rounds):
        due = [
            row
            for row in (rows if number % 2 == 0 else reversed(rows))
            if not row["reason"]
            and row["tries"] <= number
            and (len(row["runs"]) < rounds or max(map(disturbed, row["runs"])) > 0)
        ]
        for first in range(0, len(due), case.together):
            for row, run in _runs(case, due[first : first + case.together]):
                row["tries"] += 1
                row["reason"] = told = run.pop("reason")
                if not row["reason"]:
                    told = f"{median(run['samples']):.4g} s, others had {run['foreign']:.0%}"
                    told += f", pace {run['pace']:.2f}"
                    row["runs"].append(run)
                    if len(row["runs"]) > rounds:
                        row["runs"].remove(max(row["runs"], key=disturbed))
                name = case.problem.graph.name
                print(f"{name}: {row['label']}: {told}", file=sys.stderr, flush=True)
                yield row


def disturbed(run: Row) -> float:
    """By how much others slowed a run down; 0 is not at all."""
    return float(max(run["pace"] - CALM, 0.0) + max(run["foreign"] - FOREIGN, 0.0))


def row_of(label: str, devices: Ints, runtime: str = NOW, **more: Any) -> Row:
    """A placement, a digit a group, that was not run yet."""
    digits = "".join(map(str, np.asarray(devices).tolist()))
    rest = {"devices": digits, "runs": [], "tries": 0, "reason": ""}
    return {"label": label, "runtime": runtime, **more, **rest}


def devices_of(row: Row) -> Ints:
    """(num_groups,) devices."""
    return np.array([int(digit) for digit in row["devices"]])


def ran(rows: Sequence[Row]) -> list[Row]:
    """Rows of placements that ran."""
    return [row for row in rows if row["runs"] and not row["reason"]]


def measured(row: Row) -> float:
    """Median seconds of all steps of a placement that ran."""
    return float(median(sample for run in row["runs"] for sample in run["samples"]))


def milliseconds(row: Row) -> tuple[str, str]:
    """What `measured` says, and from which to which median of a round."""
    return f"{measured(row) * 1e3:.0f}", span([median(run["samples"]) for run in row["runs"]])


def _runs(case: Case, rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Each row with its run; one after the other where they cannot be run together."""
    runs = _watched(case, rows)
    if len(rows) > 1 and runs[0]["reason"]:
        runs = [run for row in rows for run in _watched(case, [row])]
    yield from zip(rows, runs, strict=True)


def _watched(case: Case, rows: Sequence[Row]) -> list[Row]:
    """One run each; `foreign` is how many cores others had meanwhile, `pace` as in `Measurement`.

    `beside` has the steps of what took turns with it.
    """
    runtime = case.runtimes[rows[0]["runtime"]]

    def clocks() -> Floats:
        own = sum(processor_seconds(pid) for pid in (*runtime.process_ids.values(), None))
        return np.array([monotonic(), busy_seconds() - own])

    before = clocks()
    many = np.stack([*case.beside, *map(devices_of, rows)])
    found = runtime.compare(case.problem, many, case.runnable, case.effort)
    seconds, others = (clocks() - before).tolist()
    runs = []
    for run in found[len(case.beside) :]:
        told: Row = {"foreign": round(others / seconds, 3), "pace": round(run.pace, 3)}
        if case.beside:
            told["beside"] = [list(each.samples) for each in found[: len(case.beside)]]
        runs.append({"samples": list(run.samples), **told, "reason": run.reason})
    return runs


def _command(*words: str | Path) -> None:
    if status := placeto([str(word) for word in words]):
        raise PlacetoError(f"placeto {' '.join(map(str, words))}: exit status {status}")
