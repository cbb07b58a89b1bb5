"""Plans of pipelines that `placeto place --pipeline` chooses from, by simulation or by runs."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec

from placeto.cli.output import note, progress
from placeto.cli.sources import extracted, is_source, saved, tell_of_estimates
from placeto.cluster import Cluster
from placeto.extraction.source import parse_source
from placeto.graph import ComputationGraph, load_graph
from placeto.placement import Placement
from placeto.placement.accelerators import accelerators
from placeto.placement.pipeline_plan import PipelinePlan
from placeto.placers import place
from placeto.placers.microbatches import Tries, is_open, worth
from placeto.placers.pipeline import plan_pipeline
from placeto.reports.pipelines import PlanRow, plan_rows
from placeto.simulation.stages import PipelineSchedule
from placeto.support.errors import NotApplicable, PlacetoError
from placeto.support.units import format_seconds

if TYPE_CHECKING:
    from placeto.cli.place import Place

STEPS = 7  # where `--measure` names no number
_NOT_OF_PIPELINES = (
    "method", "policy", "settings", "budget", "seed", "measure_seconds", "report",
    "grouping", "pin", "order", "objective",
)  # fmt: skip
SCHEDULES: tuple[PipelineSchedule, ...] = ("1f1b", "gpipe", "interleaved")


@dataclass(frozen=True)
class Chosen:
    """The plan that was chosen.

    Attributes:
        plan: with what was measured.
        placement: the same.
        rows: of all plans, and of one process alone where it ran; empty where there was no choice.
        failed: why nothing could be run; None where that was not asked for, or something did.
    """

    plan: PipelinePlan
    placement: Placement
    rows: Sequence[PlanRow] = ()
    failed: str | None = None

    @property
    def false_win(self) -> bool | None:
        """Whether one process alone is faster than the pipeline; None if either did not run."""
        ran, alone = self.plan.measured_step_time, self.plan.measured_single_device_step_time
        if ran is None or alone is None:
            return None
        return alone < ran

    def keys(self) -> dict[str, Any]:
        """What `placeto place --pipeline --json` has beside the keys of `placement_row`."""
        return {
            "split_points": list(self.plan.split_points),
            "schedule": self.plan.schedule,
            "measured_step_time": self.plan.measured_step_time,
            "measured_single_device_step_time": self.plan.measured_single_device_step_time,
            "false_win": self.false_win,
            "plans": self.rows,
        }


def steps_asked(measure: tuple[int, ...]) -> int:
    """How many steps `--measure` asks for beside `--pipeline`.

    Raises:
        PlacetoError: not one number from 1.
    """
    steps = measure[0] if measure else STEPS
    if len(measure) > 1 or steps < 1:
        text = " ".join(map(str, measure))
        raise PlacetoError(f"--measure {text}: expected one number of steps, from 1")
    return steps


def of_pipeline(arguments: "Place") -> "Place":
    """The arguments, of a source with as many microbatches as are asked for.

    Raises:
        PlacetoError: what has nothing to do with plans of pipelines, beside one; and the other way.
    """
    several = bool(arguments.others)
    if arguments.pipeline is None:
        for name in ("schedule", "microbatches"):
            if getattr(arguments, name) is not None:
                raise PlacetoError(f"--{name} goes with --pipeline FILE")
        if several:
            raise PlacetoError(
                f"place: {1 + len(arguments.others)} graphs; give one, or --pipeline FILE with "
                "those of one module"
            )
        return arguments
    for field in fields(arguments):
        if field.name in _NOT_OF_PIPELINES and getattr(arguments, field.name) != field.default:
            option = {"settings": "set"}.get(field.name, field.name.replace("_", "-"))
            raise PlacetoError(
                f"--{option} does not go with --pipeline, which splits a module into stages; leave "
                "either out"
            )
    count, source = arguments.microbatches, arguments.graph
    if several and (count is not None or any(is_open(each) for each in arguments.graphs)):
        raise PlacetoError("place: several graphs have their own microbatches each, none auto")
    if count is not None and is_source(source):
        if re.search(r"[?&]microbatches=", source):
            raise PlacetoError(f"--microbatches {count}: {source} says how many, too")
        joined = "&" if "?" in source else "?"
        arguments = replace(arguments, graph=f"{source}{joined}microbatches={count}")
    return arguments


def chosen_plan(
    arguments: "Place",
    graph: ComputationGraph,
    cluster: Cluster,
    tries: Tries | None,
    steps: int | None,
) -> Chosen:
    """The plan of a pipeline, of the graph or one of several."""
    count = arguments.microbatches
    if count is not None and count != graph.num_microbatches:
        raise PlacetoError(
            f"--microbatches {count}: graph {graph.name!r} has {graph.num_microbatches}; extract "
            f"it with ?microbatches={count}"
        )
    graphs = [graph]
    if tries is not None and tries.interrupted:
        found = choose_plan(graphs, cluster, arguments.schedule, None)
        return replace(found, placement=replace(found.placement, interrupted=True))
    if tries is not None and steps is not None:
        tried = (each.problem.graph for each in tries.placements.values())
        graphs = [each for each in tried if each.num_microbatches >= tries.least]
    for other in arguments.others:
        graphs.append(saved(extracted(other), None) if is_source(other) else load_graph(other))
    check_one_module(graphs)
    return choose_plan(graphs, cluster, arguments.schedule, steps)


def check_one_module(graphs: Sequence[ComputationGraph]) -> None:
    """Raises `PlacetoError` unless graphs differ in their number of microbatches alone."""
    modules, counts = [], [graph.num_microbatches for graph in graphs]
    for graph in graphs if len(graphs) > 1 else ():
        source = parse_source(str(graph.meta.get("source", graph.name)))
        options = {key: value for key, value in source.options.items() if key != "microbatches"}
        modules.append((source.scheme, source.target, options))
    if any(each != modules[0] for each in modules) or len(set(counts)) < len(counts):
        raise PlacetoError(
            f"graphs {', '.join(graph.name for graph in graphs)} of {', '.join(map(str, counts))} "
            "microbatches: expected the step of one module, each with another number of them"
        )


def choose_plan(
    graphs: Sequence[ComputationGraph],
    cluster: Cluster,
    schedule: PipelineSchedule | None,
    steps: int | None,
) -> Chosen:
    """Plans a pipeline of each graph, and takes the one that is fastest.

    Args:
        graphs: of one module, with different numbers of microbatches.
        cluster: the devices.
        schedule: see `plan_pipeline`; if None and plans are run, those of all of them are.
        steps: how many of each plan are run, on the real devices; None to go by simulation. What is
            run has two stages or more.

    Raises:
        PlacetoError: see `plan_pipeline`; a device that PyTorch has no name for.
    """
    found = []
    for graph in graphs:
        tell_of_estimates(graph, cluster)
        found.append(plan_pipeline(graph, cluster, schedule))
    plan, placement = min(found, key=lambda each: worth(each[1]))
    if steps is None or not placement.feasible:
        return Chosen(plan, placement, plan_rows(found, [], plan) if len(found) > 1 else [])
    # One stage is what one process alone runs, whatever is predicted of it.
    split = [each for each in found if len(each[0].stages) > 1]
    known = {(each.microbatches, each.schedule) for each, _ in split}
    for graph, order in product(graphs, SCHEDULES if schedule is None else (schedule,)):
        if (graph.num_microbatches, order) not in known:
            # Not every number of microbatches can be interleaved.
            with suppress(*(NotApplicable,) * (order == "interleaved")):
                split.append(plan_pipeline(graph, cluster, order, least=2))
    return _run(split, cluster, steps, Chosen(plan, placement))


def _run(
    found: Sequence[tuple[PipelinePlan, Placement]],
    cluster: Cluster,
    steps: int,
    simulated: Chosen,
) -> Chosen:
    """Runs plans that fit; without one that can be run, the choice is that of the simulation."""
    from placeto.measurement.pytorch.pipelines import run_pipelines

    source = str(found[0][1].problem.graph.meta["source"])
    fitting = [plan for plan, placement in found if placement.feasible]
    alone = _alone([placement for _, placement in found], cluster)
    with progress(f"running {found[0][0].graph}", interval_seconds=0) as report:
        runs, interrupted = run_pipelines(source, fitting, alone, steps, report)
    ran = [(run.step_time, run.plan) for run in runs if run.step_time is not None]
    one = min((seconds for seconds, plan in ran if plan is None), default=None)
    pipelines = [(seconds, plan) for seconds, plan in ran if plan is not None]
    took, plan = min(pipelines, key=lambda each: each[0], default=(None, simulated.plan))
    placement = next((own for each, own in found if each is plan), simulated.placement)
    rows = plan_rows(found, runs, plan)
    measured = msgspec.structs.replace(
        plan, measured_step_time=took, measured_single_device_step_time=one
    )
    failed = None
    if took is None and not interrupted:
        failed = next((run.reason for run in runs if run.reason is not None), None)
    placement = replace(placement, interrupted=interrupted)
    return Chosen(measured, placement, rows, failed)


def _alone(placements: Sequence[Placement], cluster: Cluster) -> tuple[str, list[int]] | None:
    """The best single device, as PyTorch calls it, and the microbatches with which a step fits."""
    from placeto.measurement.pytorch.calibrate import torch_names

    names, counts, device = torch_names(accelerators(cluster)), set(), ""
    for placement in placements:
        problem = placement.problem
        single, count = place(problem, "single"), problem.graph.num_microbatches
        if not single.feasible:
            continue
        number = int(single.devices[0])
        device = names[number]
        counts.add(count)
        # Undivided, a batch keeps no more than so many times as much.
        if count * single.peak_memory[number] <= problem.memory_limit[number]:
            counts.add(1)
    return (device, sorted(counts)) if counts else None


def tell_of_runs(chosen: Chosen) -> None:
    """Says on stderr what was measured, and whether one process is faster."""
    plan = chosen.plan
    if plan.measured_step_time is None:
        return
    took, predicted = format_seconds(plan.measured_step_time), format_seconds(plan.step_time)
    note(f"measured: a step of the plan takes {took}; {predicted} were predicted")
    alone = plan.measured_single_device_step_time
    if alone is None:
        note("one process alone did not run: no device has the memory, or see the table")
    elif chosen.false_win:
        note(
            f"measured: do not split: one process alone takes {format_seconds(alone)}, "
            f"{plan.measured_step_time / alone:.2f} times as fast as the best pipeline"
        )
    else:
        note(
            f"measured: one process alone takes {format_seconds(alone)}, "
            f"{alone / plan.measured_step_time:.2f} times as long"
        )
