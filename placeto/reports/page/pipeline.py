"""A pipelined step as people draw it: a lane a device, blocks of forward and backward, numbered."""

from typing import Any

import numpy as np

from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.reports.page import shapes
from placeto.reports.page.report import Report
from placeto.reports.page.shapes import UNITS, Hover
from placeto.reports.rows import pipeline_row
from placeto.simulation import Blocks, pipeline_blocks
from placeto.support.arrays import Floats, Ints
from placeto.support.units import format_seconds

MOST_BLOCKS = 2_000  # that have a number and can be pointed at, the longest
SEEN = 0.004  # the share of a step that a pause is too long for to have a number across it
PHASES = {FORWARD: "forward", BACKWARD: "backward", UPDATE: "update"}


def pipeline_figure(report: Report) -> dict[str, Any] | None:
    """Which microbatch each device that runs anything runs when; None for a step of one."""
    row = pipeline_row(report.placement)
    if row is None:
        return None
    problem, schedule = report.placement.problem, report.schedule
    blocks = pipeline_blocks(problem, schedule, SEEN * schedule.step_time)
    shown = shapes.longest(blocks.start, blocks.finish, MOST_BLOCKS)
    lanes = [
        _lane(report, device, blocks, shown[blocks.device[shown] == device])
        | {"alive": row["alive_microbatches"][device]}
        for device, spans in enumerate(report.spans)
        if len(spans.compute)
    ]
    kinds = (*PHASES.values(), "exchange")
    return {
        **row,
        "order": problem.order if isinstance(problem.order, str) else "ranks",
        "lanes": lanes,
        "kinds": [kind for kind in kinds if any(kind in lane["paths"] for lane in lanes)],
    }


def _lane(report: Report, device: int, blocks: Blocks, own: Ints) -> dict[str, Any]:
    """What a device runs; numbers of microbatches and what is told of them, of its own blocks."""
    step = report.schedule.step_time
    numbers: list[dict[str, Any]] = []
    hover: Hover = []
    for index in own.tolist():
        number, phase = int(blocks.microbatch[index]), PHASES[int(blocks.phase[index])]
        begin, end = float(blocks.start[index]), float(blocks.finish[index])
        of, text = ("", "") if number < 0 else (f"microbatch {number}, ", str(number))
        share = (end - begin) / step
        numbers.append({"phase": phase, "text": text, "at": begin / step, "share": share})
        took = f"{format_seconds(end - begin)}, ops: {blocks.ops[index]}"
        hover.append((shapes.nanoseconds(begin), shapes.nanoseconds(end), f"{of}{phase}\n{took}"))
    return {
        "device": device,
        "name": report.placement.problem.cluster.devices[device].name,
        "peak": int(report.schedule.peak_memory[device]),
        "paths": _paths(report, device),
        "numbers": numbers,
        "hover": hover,
    }


def _paths(report: Report, device: int) -> dict[str, str]:
    """When ops of each phase hold the device, launch overheads included, and when transfers do."""
    problem, schedule = report.placement.problem, report.schedule
    step, overhead = schedule.step_time, problem.cluster.devices[device].launch_overhead_seconds
    here = schedule.devices[problem.op_group] == device
    ops = np.flatnonzero(here & (schedule.finish > schedule.start))
    ops = ops[np.argsort(schedule.start[ops])]
    free = np.minimum(schedule.finish[ops] + overhead, step)
    held = np.stack([schedule.start[ops], free], axis=1)
    spans: dict[str, Floats] = {"exchange": report.spans[device].exchange}
    spans |= {name: held[problem.graph.phase[ops] == phase] for phase, name in PHASES.items()}
    return {
        kind: shapes.boxes(shapes.merged(own * (UNITS / step), 1.0)[0])
        for kind, own in spans.items()
        if len(own)
    }
