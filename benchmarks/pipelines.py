"""What a pipeline wins when it is run: `python -m benchmarks.pipelines`.

Ordinary training steps on the two workers of `local-2`, their batch in one piece and as 2, 4 and 8
microbatches, calibrated: one worker, cuts by layers, the expert's placement, the chain cut exactly,
what `auto` finds within seconds, and what its runs decide. All placements of a step run in turn
with the best single worker there is, which has as many microbatches as are best for it. It takes
hours and goes on where it was stopped; `--models` says which to go through, and leaves the results
of others. `--quick` takes minutes. Writes `results/pipelines.json` and `results/pipelines.md`.
"""

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import CALIBRATED, CLUSTER, Case, Plan, Study
from benchmarks.output import RESULTS, command_line, save, table
from benchmarks.splits import layer_cut
from placeto import simulate, step_times
from placeto.heuristics.initial import single_devices
from placeto.measurement import Effort, Runtime, conduct
from placeto.measurement.calibration.machine import machine
from placeto.placers import NotApplicable, place
from placeto.placers.measured import place_measured
from placeto.placers.ordering import ordered
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json

CUT, EVEN, AUTO, MEASURED = "layer cut", "layer cut at 0.5", "auto", "auto --measure"
EVERY_CUT = "every cut"
SHARES = [round(0.05 * number, 2) for number in range(2, 19)]
CUTS_RUN = 4  # with each M, of these: the even one, and those that are fastest in the simulator
METHODS = ("expert", "stages", AUTO)  # in this order; the last is traced
EFFORT = Effort(warm_up=1, steps=10, deadline_seconds=900, patience_seconds=1.0)
EVERY_EFFORT = replace(EFFORT, steps=6, deadline_seconds=1800)


@dataclass(frozen=True)
class Pipelines:
    """What is measured: sources by name, microbatches, seconds of a search, and the loop's."""

    sources: dict[str, str]
    microbatches: tuple[int, ...]
    seconds: float
    loop_seconds: float  # of search, all rounds together
    runs: int  # of the loop


FULL = Pipelines(
    {
        "resnet50": "keras:ResNet50?image=64&classes=100&batch=64",
        "vgg16": "keras:VGG16?image=48&classes=100&batch=32",
        "inception_v3": "keras:InceptionV3?image=96&classes=100&batch=32",
        "mobilenet_v2": "keras:MobileNetV2?image=96&classes=100&batch=32",
        "encoder": "benchmarks.models:encoder?batch=16",
        "language": "benchmarks.models:language?batch=256",
    },
    (1, 2, 4, 8),
    seconds=10.0,
    loop_seconds=30.0,
    runs=8,
)
QUICK = Pipelines({"encoder": "benchmarks.models:encoder?depth=2&batch=8"}, (1, 4), 2.0, 4.0, 4)


@dataclass(frozen=True)
class Step:
    """A model's training step in each number of microbatches, calibrated."""

    name: str
    plan: Pipelines
    cases: dict[int, Case]
    kept: Path  # what was measured until now

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        """Runs what was not run yet."""
        found: dict[str, Any] = read_json(self.kept) if self.kept.exists() else {"steps": {}}
        if "singles" not in found:
            self._say("single workers")
            found["singles"] = self._singles(runtime)
            write_json(self.kept, found)
        single = best_single(found)
        for count in self.cases:
            if str(count) not in found["steps"]:
                self._say(f"{count} microbatches")
                found["steps"][str(count)] = self._placements(runtime, count, single)
                write_json(self.kept, found)
        if EVERY_CUT not in found:
            self._say(EVERY_CUT)
            found[EVERY_CUT] = self._every_cut(runtime, found, single)
            write_json(self.kept, found)
        if MEASURED not in found:
            self._say(MEASURED)
            found[MEASURED] = self._loop(runtime, int(best(found, AUTO)[0]), single)
            write_json(self.kept, found)
        return found

    def _say(self, what: str) -> None:
        print(f"{self.name}: {what}", file=sys.stderr, flush=True)

    def _singles(self, runtime: Runtime) -> dict[str, list[list[float]]]:
        """By microbatches, the samples of either worker."""
        keys = [(count, number) for count in self.cases for number in range(2)]
        placed = [self._single(count, number) for count, number in keys]
        runs = runtime.in_turn(placed, EFFORT)
        _check(run.reason for run in runs)
        found: dict[str, list[list[float]]] = {str(count): [] for count in self.cases}
        for (count, _), run in zip(keys, runs, strict=True):
            found[str(count)].append(list(run.samples))
        return found

    def _single(self, count: int, number: int) -> tuple[PlacementProblem, Ints, Any]:
        case = self.cases[count]
        return case.problem, single_devices(case.problem)[number], case.runnable

    def _placements(self, runtime: Runtime, count: int, single: int) -> dict[str, Any]:
        """Of each placement what is predicted and what it took, in turn with single workers."""
        case = self.cases[count]
        problem = ordered(case.problem)
        many = best_cuts(problem)
        for method in METHODS:
            with suppress(NotApplicable):
                many[method] = place(problem, method, self.plan.seconds).devices
        placed = [self._single(single, number) for number in range(2)]
        placed += [(problem, devices, case.runnable) for devices in many.values()]
        *runs, last = runtime.in_turn(placed, EFFORT, traces=1)
        _check([last.reason])
        one = self._predicted_single(single)
        seen = conduct(problem, simulate(problem, many[AUTO]), last)
        rows = {}
        for (label, devices), run in zip(many.items(), [*runs[2:], last], strict=True):
            schedule = simulate(problem, devices)
            rows[label] = {
                "predicted": schedule.step_time / one,
                "samples": list(run.samples),
                "transfers": len(schedule.transfers),
                "devices": "".join(map(str, devices.tolist())),
            }
        beside = [list(run.samples) for run in runs[:2]]
        order = problem.order if isinstance(problem.order, str) else "ranks"
        return {"order": order, "beside": beside, "in_order": seen.in_order, "rows": rows}

    def _every_cut(self, runtime: Runtime, found: dict[str, Any], single: int) -> dict[str, Any]:
        """All cuts with the M that is best for those that were run, in turn with `auto`'s best."""
        count, auto = best_cut(found)[0], best(found, AUTO)[0]
        problem, runnable = self._in_order(count, found)
        cuts = {f"{CUT} at {share}": layer_cut(problem, share) for share in SHARES}
        devices = np.array(list(found["steps"][auto]["rows"][AUTO]["devices"]), dtype=np.int64)
        placed = [self._single(single, number) for number in range(2)]
        best_problem, best_runnable = self._in_order(auto, found)
        placed.append((best_problem, devices, best_runnable))
        placed += [(problem, each, runnable) for each in cuts.values()]
        runs = runtime.in_turn(placed, EVERY_EFFORT)
        _check(run.reason for run in runs)
        one, two, of_auto, *of_cuts = [list(run.samples) for run in runs]
        rows = {label: {"samples": samples} for label, samples in zip(cuts, of_cuts, strict=True)}
        return {"microbatches": int(count), "beside": [one, two],
                "rows": {AUTO: {"samples": of_auto}} | rows}  # fmt: skip

    def _in_order(self, count: str, found: dict[str, Any]) -> tuple[PlacementProblem, Any]:
        """The problem in the order in which its placements were run, and what runs it."""
        case, order = self.cases[int(count)], found["steps"][count]["order"]
        problem = replace(case.problem, grouping=case.problem.op_group, order=order)
        return problem, case.runnable

    def _loop(self, runtime: Runtime, count: int, single: int) -> dict[str, Any]:
        """What search and runs end with, run once more in turn with single workers."""
        case = self.cases[count]
        problem = ordered(case.problem)
        found = place_measured(problem, runtime, case.runnable, AUTO, self.plan.loop_seconds,
                               runs=self.plan.runs)  # fmt: skip
        devices = found.placement.devices
        placed = [self._single(single, number) for number in range(2)]
        *beside, run = runtime.in_turn([*placed, (problem, devices, case.runnable)], EFFORT)
        _check([run.reason])
        predicted = simulate(problem, devices).step_time / self._predicted_single(single)
        return {
            "microbatches": count, "runs": sum(len(each.runs) for each in found.candidates),
            "found_by": found.placement.found_by, "predicted": predicted,
            "samples": list(run.samples), "beside": [list(each.samples) for each in beside],
        }  # fmt: skip

    def _predicted_single(self, count: int) -> float:
        problem = self.cases[count].problem
        return simulate(problem, single_devices(problem)[0]).step_time


def best_cuts(problem: PlacementProblem) -> dict[str, Ints]:
    """By name, the cuts of the layers in two that are run, of all that are simulated."""
    cuts = {f"{CUT} at {share}": layer_cut(problem, share) for share in SHARES}
    seconds = dict(zip(cuts, step_times(problem, np.stack(list(cuts.values()))), strict=True))
    fastest = sorted(cuts, key=lambda label: (label != EVEN, seconds[label]))
    return {label: cuts[label] for label in fastest[:CUTS_RUN]}


def best_single(found: dict[str, Any]) -> int:
    """How many microbatches make a step of one worker fastest, by the mean of both in turn."""
    singles = {count: np.mean(samples, axis=0) for count, samples in found["singles"].items()}
    base = next(iter(singles.values()))
    return int(min(singles, key=lambda count: float(np.median(singles[count] / base))))


def ratio(samples: list[float], beside: list[list[float]]) -> float:
    """The median of the turns' ratios, over the mean of both single workers in the turn."""
    return float(np.median(np.array(samples) / np.mean(beside, axis=0)))


def best(found: dict[str, Any], label: str) -> tuple[str, float, float]:
    """Of a kind of placement the best number of microbatches, its ratio, and the predicted one."""
    each = [
        (count, ratio(step["rows"][label]["samples"], step["beside"]),
         step["rows"][label]["predicted"])
        for count, step in found["steps"].items()
        if label in step["rows"]
    ]  # fmt: skip
    return min(each, key=lambda of: of[1])


def best_cut(found: dict[str, Any]) -> tuple[str, float, float]:
    """The best of the cuts that were run with every number of microbatches, as `best`."""
    labels = {label for step in found["steps"].values() for label in step["rows"]}
    cuts = [best(found, label) for label in labels if label.startswith(CUT)]
    return min(cuts, key=lambda of: of[1])


def markdown(models: dict[str, Any], sources: Mapping[str, str]) -> str:
    """A row a model: its best single worker, the best of each kind of placement over it."""
    rows, ratios = [], []
    for name, found in models.items():
        single = best_single(found)
        one = 1e3 * float(np.median(np.mean(found["singles"][str(single)], axis=0)))
        cells = [f"`{name}`", f"{one:.0f} ({single})"]
        kinds = [best(found, EVEN), best_cut(found), *(best(found, label) for label in METHODS)]
        cells += [f"{value:.2f} ({count})" for count, value, _ in kinds]
        loop = found[MEASURED]
        measured = ratio(loop["samples"], loop["beside"])
        in_order = min(step["in_order"] for step in found["steps"].values())
        last = f"{measured:.2f} ({loop['microbatches']})"
        rate = 1e3 * int(sources[name].rpartition("batch=")[2]) / one
        examples = f"{rate:.1f}, {rate / kinds[-1][1]:.1f}"
        rows.append([*cells, f"{kinds[-1][2]:.2f}", last, f"{in_order:.1%}", examples])
        ratios.append([value for _, value, _ in kinds] + [measured])
    means = [f"{value:.2f}" for value in np.exp(np.log(ratios).mean(axis=0))]
    rows.append(["geometric mean", "", *means[:-1], "", means[-1], "", ""])
    header = ["step", "one worker, ms", "even cut", "best cut", "`expert`", "`stages`", "`auto`"]
    header += ["predicted", "`auto --measure`", "in order", "examples a second: one, `auto`"]
    columns = ["step", "microbatches", "order"]
    columns += ["`stages`", "predicted", "`auto`", "predicted", "transfers", "off by"]
    cuts = ["step", "microbatches", "best of all cuts", "at", "`auto` in the same turns"]
    tables = [(header, rows), (columns, by_microbatches(models)), (cuts, by_cut(models))]
    return "\n".join(table(*each) for each in tables)


def by_microbatches(models: dict[str, Any]) -> list[list[str]]:
    """A row a model and number of microbatches.

    The last column is of all placements: the mean of how far the predicted ratio is off.
    """
    rows = []
    for name, found in models.items():
        for count, step in found["steps"].items():
            each = {
                label: (ratio(row["samples"], step["beside"]), row["predicted"])
                for label, row in step["rows"].items()
            }
            off = np.mean([abs(predicted / measured - 1) for measured, predicted in each.values()])
            cells = [f"{value:.2f}" for label in ("stages", AUTO) for value in each[label]]
            transfers = str(step["rows"][AUTO]["transfers"])
            rows.append([f"`{name}`", count, step["order"], *cells, transfers, f"{off:.0%}"])
    return rows


def by_cut(models: dict[str, Any]) -> list[list[str]]:
    """A row a model: the fastest of all cuts, and what `auto` took in the same turns."""
    rows = []
    for name, found in models.items():
        many = found[EVERY_CUT]
        each = {label: ratio(row["samples"], many["beside"]) for label, row in many["rows"].items()}
        auto, label = each.pop(AUTO), min(each, key=each.__getitem__)
        share = label.removeprefix(f"{CUT} at ")
        cells = [f"`{name}`", str(many["microbatches"]), f"{each[label]:.2f}", share]
        rows.append([*cells, f"{auto:.2f}"])
    return rows


def _check(reasons: Iterable[str]) -> None:
    if reason := next(filter(None, reasons), ""):
        raise RuntimeError(f"cannot be run: {reason}")


def steps(plan: Pipelines, folder: Path, names: Iterable[str]) -> Iterable[Step]:
    """Extracts and calibrates what is not there yet, a model after the other.

    What is calibrated keeps its numbers of microbatches.
    """
    for name in names:
        own = folder / name
        counts = plan.microbatches
        if (own / CALIBRATED).exists():
            there = (own / CALIBRATED).parent.glob(f"{name}_*.json.gz")
            counts = tuple(
                sorted(int(path.name[len(name) + 1 : -len(".json.gz")]) for path in there)
            )
        sources = {f"{name}_{count}": f"{plan.sources[name]}&microbatches={count}"
                   for count in counts}  # fmt: skip
        # What transfers cost is measured with the first model that is calibrated.
        before = min(
            folder.glob(f"*/{CALIBRATED}"), key=lambda path: path.stat().st_mtime, default=None
        )
        keep = ("--keep-channels",) if before else ()
        effort = ("--warm-up", "1", "--steps", "5", "--traces", "2", *keep)
        made = Plan(sources, {}, effort, cluster=str(before or CLUSTER))
        study = Study(name, made, own, own)
        study.prepare()
        cases = {count: study.case(f"{name}_{count}", "auto") for count in counts}
        yield Step(name, plan, cases, own / "measured.json")


def main() -> None:
    """Runs the study, and writes what there is."""
    parser = command_line("pipelines", "a small model, minutes; results into the folder")
    parser.add_argument("--models", nargs="+", choices=FULL.sources, help="only these")
    parser.add_argument("--microbatches", nargs="+", type=int, help="only these, of new models")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    wanted = parser.parse_args()
    plan = QUICK if wanted.quick else FULL
    if wanted.microbatches:
        plan = replace(plan, microbatches=tuple(wanted.microbatches))
    folder = wanted.folder or Path("build") / ("pipelines-quick" if wanted.quick else "pipelines")
    partly = wanted.models and not wanted.quick
    models = read_json(RESULTS / "pipelines.json")["models"] if partly else {}
    for step in steps(plan, folder, wanted.models or plan.sources):
        with Runtime(next(iter(step.cases.values())).problem.cluster) as runtime:
            models[step.name] = step.measure(runtime)
    settings = {name: value for name, value in asdict(plan).items() if name != "microbatches"}
    document = {"machine": machine(), "effort": asdict(EFFORT), **settings, "models": models}
    save("pipelines", document, markdown(models, plan.sources), folder if wanted.quick else RESULTS)


if __name__ == "__main__":
    main()
