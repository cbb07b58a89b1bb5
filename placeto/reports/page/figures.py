"""What a report draws, as plain values for the template: paths, positions, labels."""

from typing import Any

import numpy as np

from placeto.reports.page import shapes
from placeto.reports.page.group_layout import lay_out
from placeto.reports.page.report import Report
from placeto.reports.page.shapes import UNITS, Hover, Tick, nanoseconds, shortened
from placeto.simulation import memory_over_time
from placeto.support.arrays import Floats
from placeto.support.units import format_bytes, format_seconds

COLOURS = 8  # of devices; the ninth has the first one's again
LEAST_SECONDS = 1e-4  # where the search's logarithmic time axis begins, at the latest
MOST_OPS = 3_000  # of all devices; more would make the page large and are too short to point at
MOST_TRANSFERS = 1_500
MOST_ROWS = 40  # of the table of groups


def timeline_figure(report: Report) -> dict[str, Any]:
    """When each device computes and each channel carries."""
    step, scale = report.schedule.step_time, UNITS / report.schedule.step_time
    devices = [
        {
            "dense": shapes.span_paths(spans.compute, step),
            "transfer": shapes.boxes(shapes.merged(spans.transfer * scale, 1.0)[0]),
            "wait": shapes.boxes(shapes.merged(spans.wait * scale, 1.0)[0]),
            "value": f"{spans.seconds()['compute'] / step:.0%} busy",
        }
        for spans in report.spans
    ]
    channels = _channels(report)
    still = len(report.placement.problem.cluster.channels) - len(channels)
    return {"devices": devices, "channels": channels, "still_channels": still}


def _channels(report: Report) -> list[dict[str, Any]]:
    """Those that carry something: a cluster of many devices may have thousands."""
    problem, schedule, step = report.placement.problem, report.schedule, report.schedule.step_time
    transfers = schedule.transfers
    lanes = []
    for number, channel in enumerate(problem.cluster.channels):
        own = np.flatnonzero(transfers.channel == number)
        if len(own) == 0:
            continue
        own = own[np.argsort(transfers.start[own], kind="stable")]
        spans = np.stack([transfers.start[own], transfers.sent[own]], axis=1)
        spans = spans[spans[:, 1] > spans[:, 0]]
        size = int(problem.graph.tensor_bytes[transfers.tensor[own]].sum())
        busy = float((spans[:, 1] - spans[:, 0]).sum())
        shared = len(channel.sources) > 1  # and has no device's colour
        source = problem.cluster.device_index(channel.sources[0])
        lanes.append(
            {
                "number": number,
                "name": channel.name,
                "colour": None if shared else source % COLOURS,
                "dense": shapes.span_paths(spans, step),
                "value": f"{busy / step:.0%}, {format_bytes(size)}",
            }
        )
    return lanes


def hover(report: Report) -> dict[str, list[Hover]]:
    """What the timeline tells of what lies under the pointer, by device and by channel.

    That is the longest ops and transfers, each in the order of their starts.
    """
    problem, schedule = report.placement.problem, report.schedule
    graph, transfers = problem.graph, schedule.transfers
    op_device = schedule.devices[problem.op_group]
    devices: list[Hover] = [[] for _ in problem.cluster.devices]
    for op in shapes.longest(schedule.start, schedule.finish, MOST_OPS).tolist():
        begin, end = schedule.start[op], schedule.finish[op]
        text = (
            f"{shortened(graph.op_names[op])}\n{shortened(graph.op_types[op])}, "
            f"{format_seconds(end - begin)}, group {problem.op_group[op]}"
        )
        devices[op_device[op]].append((nanoseconds(begin), nanoseconds(end), text))
    channels: list[Hover] = [[] for _ in problem.cluster.channels]
    for index in shapes.longest(transfers.start, transfers.sent, MOST_TRANSFERS).tolist():
        tensor = transfers.tensor[index]
        begin, end = transfers.start[index], transfers.sent[index]
        readers = np.flatnonzero(transfers.destinations[index])
        to = ", ".join(problem.cluster.devices[device].name for device in readers)
        text = (
            f"{shortened(graph.op_names[graph.tensor_producer[tensor]])}\n"
            f"{format_bytes(graph.tensor_bytes[tensor])} to {to}, {format_seconds(end - begin)}, "
            f"queued for {format_seconds(begin - transfers.request[index])}"
        )
        channels[transfers.channel[index]].append((nanoseconds(begin), nanoseconds(end), text))
    return {"device": devices, "channel": channels}


def time_figure(report: Report) -> dict[str, Any]:
    """Where each device's time goes: shares of the step, and seconds."""
    devices, step = report.placement.problem.cluster.devices, report.schedule.step_time
    rows = []
    for device, spans in zip(devices, report.spans, strict=True):
        seconds = spans.seconds()
        ends = np.cumsum(list(seconds.values())) / step
        parts = [
            {"kind": kind, "at": float(end - took / step), "share": took / step, "seconds": took}
            for (kind, took), end in zip(seconds.items(), ends, strict=True)
        ]
        rows.append({"name": device.name, "parts": parts})
    kinds = [
        kind
        for kind in vars(report.spans[0])
        if kind not in ("exchange", "launch") or any(len(vars(each)[kind]) for each in report.spans)
    ]
    return {"rows": rows, "kinds": kinds}


def memory_figure(report: Report) -> list[dict[str, Any]]:
    """Memory in use over the step, a curve a device, beside its limit.

    A curve that stays far below its limit is drawn larger than to the limit's scale; the meter
    beside it shows which share of the limit it reaches.
    """
    problem = report.placement.problem
    instants, memory = memory_over_time(problem, report.schedule)
    lanes = []
    for number, limit in enumerate(problem.memory_limit.tolist()):
        heights = shapes.envelope(instants, memory[:, number], report.schedule.step_time)
        peak = int(heights.max())
        near = peak * 3 >= limit
        top = max(peak, limit) * 1.08 if near else peak * 1.25
        limit_at = 1 - limit / top if near and top > 0 else None
        path = shapes.area_path(heights / max(top, 1))
        lanes.append({"path": path, "limit_at": limit_at, "top": top, "peak": peak})
    return lanes


def groups_figure(report: Report) -> dict[str, Any]:
    """The group graph along time, and which groups work the longest."""
    placement, problem = report.placement, report.placement.problem
    layout = lay_out(problem, report.schedule)
    devices = placement.devices[layout.group]
    seconds = problem.group_seconds[np.arange(problem.num_groups), placement.devices]
    circles = [
        {
            "x": x,
            "y": y,
            "r": r,
            "colour": device % COLOURS,
            "title": f"{shortened(problem.group_names[group])}\n"
            f"group {group} on {problem.cluster.devices[device].name}, "
            f"{format_seconds(seconds[group])} of work, "
            f"{format_bytes(problem.group_memory[group])} held",
        }
        for group, device, x, y, r in zip(
            layout.group.tolist(), devices.tolist(), layout.x, layout.y, layout.radius, strict=True
        )
    ]
    most = max(int(layout.edge_bytes.max(initial=0)), 1)
    lines = [
        {
            "a": a,
            "b": b,
            "colour": int(devices[a]) % COLOURS,
            "crosses": bool(devices[a] != devices[b]),
            "width": 0.6 + 2.4 * (size / most) ** 0.5,
            "bytes": format_bytes(size),
        }
        for (a, b), size in zip(layout.edge.tolist(), layout.edge_bytes.tolist(), strict=True)
    ]
    source, target, size = problem.group_edges
    crossing = placement.devices[source] != placement.devices[target]
    return {
        "layout": layout,
        "circles": circles,
        "lines": lines,
        "ticks": shapes.time_ticks(layout.end),
        "num_edges": len(source),
        "num_crossing": int(crossing.sum()),
        "crossing_bytes": format_bytes(int(size[crossing].sum())),
        "seconds": seconds,
        "ops": np.bincount(problem.op_group),
        "longest": np.argsort(-seconds, kind="stable")[:MOST_ROWS].tolist(),
    }


def search_figure(report: Report) -> dict[str, Any] | None:
    """The best step time over the seconds of the search; None where there was no search."""
    placement = report.placement
    trace = np.array([(seconds, best) for _, seconds, best in placement.trace]).reshape(-1, 2)
    learned = np.array(placement.learning).reshape(-1, 2)
    learned = learned[np.isfinite(learned[:, 1])]
    points = np.concatenate([trace, learned])
    if len(points) < 2:
        return None
    end = max(placement.wall_seconds, float(points[:, 0].max()), 2 * LEAST_SECONDS)
    begin = min(max(float(points[:, 0].min()), LEAST_SECONDS), end / 10)
    seen = points[:, 1]
    single = report.base.single
    memory = "" if single.feasible else " if it had the memory"
    references = [
        (f"best single device{memory}", single.step_time),
        ("bound", report.lower_bound),
    ]
    low = min(float(seen.min()), max(report.lower_bound, 0.5 * float(seen.min())))
    high = float(seen.max())
    pad = 0.06 * (high - low) or 0.06 * high
    low, high = max(low - pad, 0.0), high + pad

    def across(seconds: Floats) -> Floats:
        shares = np.log10(np.maximum(seconds, begin) / begin) / np.log10(end / begin)
        rounded: Floats = np.round(1000 * np.clip(shares, 0, 1), 1)
        return rounded

    def down(step_times: Floats) -> Floats:
        rounded: Floats = np.round(1000 * (1 - (step_times - low) / (high - low)), 1)
        return rounded

    best = list(zip(across(trace[:, 0]), down(trace[:, 1]), strict=True))
    # It holds each height until the next one's place, and the last to the end.
    corners = "".join(f"H{x:g}V{y:g}" for x, y in best[1:])
    means = zip(across(learned[:, 0]), down(learned[:, 1]), strict=True)
    line = "L".join(f"{x:g} {y:g}" for x, y in means)
    return {
        "best": f"M{best[0][0]:g} {best[0][1]:g}{corners}H1000" if best else "",
        "learned": line and f"M{line}",
        "references": [
            {"name": f"{name}, {format_seconds(value)}", "at": (high - value) / (high - low)}
            for name, value in references
            if low <= value <= high
        ],
        "x_ticks": shapes.decade_ticks(begin, end),
        "y_ticks": [Tick(1 - tick.at, tick.label) for tick in shapes.range_ticks(low, high)],
        "first": format_seconds(float(trace[0, 1])) if len(trace) else "–",
        "last": format_seconds(float(trace[-1, 1])) if len(trace) else "–",
        "seconds": format_seconds(placement.wall_seconds),
        "evaluations": f"{placement.evaluations:,}",
        "improvements": max(len(trace) - 1, 0),
    }
