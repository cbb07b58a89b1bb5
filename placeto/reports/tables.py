"""Rich tables: pure functions from what is known to what is printed."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from placeto.bounds import critical_path, work_bound
from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.measurement import Conduct, Measurement
from placeto.placement import Placement
from placeto.placers import PLACERS
from placeto.problem import PlacementProblem
from placeto.reports.rows import (
    Baseline,
    CandidateRow,
    DeviceRow,
    EvaluationRow,
    examples_per_second,
    fullest,
    geometric_means,
    kept_row,
    pipeline_row,
)
from placeto.reports.summary import (
    GroupsSummary,
    cannot_run,
    longest_types,
    num_groups,
    path_on_kind,
    work_seconds,
)
from placeto.support.arrays import Ints
from placeto.support.units import format_bytes, format_seconds
from placeto.zoo.families import FAMILIES, SIZE

RATE = "ex/s"  # examples a second; short, so that tables of placers stay narrow
_OBJECTIVES = {"step-time": "step time", "throughput": "a microbatch"}


def compare_table(placements: Sequence[Placement], base: Baseline) -> Table:
    """Placers on one problem, one row each; the fastest that fits in memory stands out."""
    problem = base.single.problem
    seconds = _OBJECTIVES[problem.objective]
    # One placer may have proven more than is known beforehand.
    low = max((bound for bound in map(base.bound, placements) if bound < np.inf), default=None)
    below = "none fits" if low is None else f"no placement that fits is below {format_time(low)}"
    rate = [] if problem.graph.batch is None else [RATE]
    table = empty_table(
        f"{problem.graph.name} on {problem.cluster.name}, {problem.num_groups} groups",
        ["method", seconds, *rate, "ratio", "gap", "peak memory", "fits", "placed", "took"],
        left=("method", "fits"),
        whole=("method",),
        caption=f"ratio: {seconds} over {_single(base)}. Gap: at most so many times the optimum; "
        f"{below}. Peak memory: of the fullest device. Placed: placements simulated."
        f"{' Ex/s: examples a second.' if rate else ''}",
    )
    table.collapse_padding = True
    fastest = min((each.seconds for each in placements if each.feasible), default=None)
    for each in placements:
        table.add_row(
            each.method,
            format_time(each.seconds),
            *(format_rate(examples_per_second(problem.graph, each.batch_seconds)) for _ in rate),
            format_ratio(base.ratio(each)),
            format_ratio(base.gap(each)),
            _in_one_unit(format_peak(each.peak_memory, problem.memory_limit)),
            _fit(each),
            str(each.evaluations),
            f"{each.wall_seconds:.1f}",
            style="bold" if each.feasible and each.seconds == fastest else None,
        )
    return table


def placement_table(
    placement: Placement, base: Baseline, measured: Sequence[CandidateRow] | None = None
) -> Table:
    """One placement: how fast, how good, how it was found; where any were, as measured."""
    problem, method = placement.problem, placement.method
    settings = [f"{name}={str(value).lower()}" for name, value in placement.settings.items()]
    pairs: dict[str, str | Text] = {
        "graph": f"{problem.graph.name}, {problem.num_groups} groups",
        "cluster": f"{problem.cluster.name}, {problem.num_devices} devices",
        "method": f"{method} ({', '.join(settings)})" if settings else method,
        "step time": format_time(placement.step_time),
        **_examples(problem.graph, placement.step_time),
    }
    if problem.objective == "throughput":
        pairs["a microbatch"] = format_time(placement.microbatch_seconds)
    pairs[_OBJECTIVES[problem.objective]] += _optimum(base.gap(placement))
    if measured is not None:
        kept = kept_row(measured)
        pairs["measured"] = "-" if kept is None else _sure(kept)
    pairs["ratio"] = f"{format_ratio(base.ratio(placement))} of {_single(base)}"
    pairs["lower bound"] = format_time(base.bound(placement))
    pairs["fits"] = _fit(placement)
    pipeline = pipeline_row(placement)
    if pipeline is not None:
        pairs["pipeline"] = (
            f"{pipeline['microbatches']} microbatches, at most "
            f"{max(pipeline['alive_microbatches'])} alive on a device; bubble "
            f"{format_share(pipeline['bubble'])}"
        )
    alone = len(np.unique(placement.devices)) == 1 < problem.num_devices
    if alone and placement.feasible and method not in ("given", "single"):
        pairs["devices"] = f"one device is enough: {placement.device_names()[0]}"
    if method != "given":
        part = "" if placement.found_by == method else f"by {placement.found_by} "
        pairs["found"] = (
            f"{part}in {placement.wall_seconds:.1f} s, {placement.evaluations} placements "
            f"simulated, seed {placement.seed}"
        )
    return _pairs(pairs)


def _sure(kept: CandidateRow) -> str:
    """What a placement was predicted and measured to take, and how sure that is."""
    between = " and ".join(map(format_time, kept["interval"]))
    predicted = format_time(kept["predicted_step_time"])
    return f"{format_time(kept['step_time'])}, between {between}; {predicted} predicted"


def measurement_table(
    problem: PlacementProblem, measurement: Measurement, simulated: float, seen: Conduct
) -> Table:
    """A placement that was run: the time of its steps, beside the simulated one."""
    low, high = measurement.interval
    waits = "none is sent"
    if seen.send_wait is not None:
        waits = f"wait {format_time(seen.send_wait)} to be sent"
    count = len(measurement.samples)
    return _pairs(
        {
            "graph": problem.graph.name,
            "cluster": problem.cluster.name,
            "step time": f"{format_time(measurement.step_time)}, median of {count} steps",
            **_examples(problem.graph, measurement.step_time),
            "interval": f"{format_time(low)} to {format_time(high)} (95% of the median)",
            "deviation": f"{format_time(measurement.deviation)}, median absolute",
            "simulated": format_time(simulated),
            "as simulated": f"{seen.in_order:.1%} of pairs of ops in order, tensors: {waits}",
        }
    )


def candidates_table(rows: Sequence[CandidateRow]) -> Table:
    """Placements that were run for real, the one that was kept stands out."""
    rate = [RATE] if any(row["examples_per_second"] for row in rows) else []
    times = ["simulated", "predicted", "measured", *rate, "between"]
    table = empty_table(
        "measured",
        ["method", *times, "ratio", "runs", ""],
        left=("method", ""),
        caption="Simulated: by the costs as given; predicted: as corrected by all runs. Between: "
        "the median with 95% confidence, or all steps where they are few. Ratio: to the first "
        "row that ran, of steps in turn; it decides."
        f"{' Ex/s: examples a second.' if rate else ''}",
    )
    table.collapse_padding = True
    for row in rows:
        table.add_row(
            row["method"],
            format_time(row["simulated_step_time"]),
            format_time(row["predicted_step_time"]),
            format_time(row["step_time"]),
            *(format_rate(row["examples_per_second"]) for _ in rate),
            format_between(row["interval"]),
            format_ratio(row["ratio"]),
            str(row["runs"]),
            "kept" if row["kept"] else row["reason"] or ("given up" if row["given_up"] else ""),
            style="bold" if row["kept"] else None,
        )
    return table


def format_between(interval: Sequence[float | None]) -> str:
    """`200-235 ms`: to three digits, as narrow as can be; a dash for none."""
    ends = [float(f"{seconds:.3g}") for seconds in interval if seconds is not None]
    if not ends:
        return "-"
    first, last = map(format_time, ends)
    number, unit = first.split()
    return f"{number}-{last}" if last.endswith(f" {unit}") else f"{first}-{last}"


def evaluation_tables(policy: str, rows: Sequence[EvaluationRow]) -> list[Table]:
    """A policy and placers on many problems: a table a cluster, and one of the means."""
    tables = []
    for cluster in dict.fromkeys(row["cluster"] for row in rows):
        here = [row for row in rows if row["cluster"] == cluster]
        ratios = {mean["method"]: format_ratio(mean["ratio"]) for mean in geometric_means(here)}
        del ratios["single"]
        rate = [RATE] if any(row["examples_per_second"] for row in here) else []
        table = empty_table(
            f"{policy} on {cluster}",
            ["graph", "single", *rate, *ratios],
            left=("graph",),
            whole=("graph", "single"),
            caption="single: step time of the best single device, in brackets where it does not "
            f"fit in memory.{' Ex/s: its examples a second.' if rate else ''} Other columns: step "
            "time over that; OOM where it does not fit.",
        )
        table.collapse_padding = True  # one column a method: there may be many
        for graph in dict.fromkeys(row["graph"] for row in here):
            found = {row["method"]: row for row in here if row["graph"] == graph}
            single = found["single"]
            alone = format_time(single["step_time"])
            rates = [format_rate(single["examples_per_second"]) for _ in rate]
            cells = [_ratio_cell(found.get(method)) for method in ratios]
            alone = alone if single["feasible"] else f"({alone})"
            table.add_row(graph, alone, *rates, *cells)
        table.add_section()
        table.add_row("geometric mean", "", *("" for _ in rate), *ratios.values(), style="bold")
        tables.append(table)
    means = empty_table(
        "all problems",
        ["method", "geometric mean", "fits", "seconds"],
        left=("method",),
        caption="Geometric mean: of step time over that of the best single device, of placements "
        "that fit in memory. Seconds: to find a placement, on average.",
    )
    for mean in geometric_means(rows):
        fits = f"{mean['problems'] - mean['infeasible']} of {mean['problems']}"
        seconds = f"{mean['wall_seconds']:.2f}"
        means.add_row(mean["method"], format_ratio(mean["ratio"]), fits, seconds)
    return [*tables, means]


def device_table(rows: Sequence[DeviceRow]) -> Table:
    """What each device has of a placement; see `device_rows`."""
    columns = ["device", "kind", "groups", "ops", "work", "peak memory"]
    table = empty_table("", columns, left=("device", "kind"))
    for row in rows:
        peak = format_peak([row["peak_memory"]], [row["memory_limit"]])
        counts = str(row["groups"]), str(row["ops"])
        table.add_row(row["device"], row["kind"], *counts, format_time(row["work_seconds"]), peak)
    return table


def graph_tables(graph: ComputationGraph, kind: str | None, path: bool) -> list[Table]:
    """A graph: sizes, seconds a device kind, op types; maybe its critical path on a kind."""
    missing = {name: f" (cannot run {ops} ops)" for name, ops in cannot_run(graph).items()}
    seconds = ", ".join(
        f"{name} {format_time(work_seconds(graph, name))}{missing.get(name, '')}"
        for name in graph.op_seconds
    )
    control = int((graph.tensor_bytes == 0).sum())
    pairs = {
        "graph": graph.name,
        "kind": str(graph.meta.get("kind") or "-"),
        "source": str(graph.meta.get("source") or "-"),
        "ops": str(graph.num_ops),
        "microbatches": str(graph.num_microbatches),
        "tensors": f"{graph.num_tensors}, {control} of them control dependencies",
        "edges": str(graph.num_edges),
        "tensor bytes": format_bytes(graph.tensor_bytes.sum()),
        "parameters": format_bytes(graph.param_bytes.sum()),
        "work": _flops(graph.flops.sum()),
        "op seconds": seconds or "-",
    }
    where = f" on {kind}" if kind else ""
    if kind is not None and path:
        pairs["critical path"] = f"{format_time(path_on_kind(graph, kind))}{where}"
    types = empty_table(
        f"op types by time{where}", ["type", "ops", "time", "share"], left=("type",)
    )
    for name, ops, time, share in longest_types(graph, kind):
        types.add_row(name, str(ops), format_time(time), format_share(share))
    return [_pairs(pairs), types]


def groups_table(summary: GroupsSummary) -> Table:
    """A grouping; see `groups_summary`."""
    imbalance = summary["time_imbalance"]
    times = "" if imbalance is None else f", {imbalance:.3g} times the mean"
    return _pairs(
        {
            "groups": str(summary["num_groups"]),
            "largest": f"{summary['largest_ops']} ops",
            "longest": f"{format_share(summary['largest_time_share'])} of the work{times}",
            "cut": f"{format_bytes(summary['cut_bytes'])} between groups",
        }
    )


def cluster_table(problem: PlacementProblem, base: Baseline) -> Table:
    """What a cluster can make of a graph: bounds, and the best single device."""
    single, device = base.single, base.single_device
    peak = format_peak(single.peak_memory[[device]], problem.memory_limit[[device]])
    fits = "fits" if single.feasible else "does not fit"
    pairs: dict[str, str | Text] = {
        "cluster": problem.cluster.name,
        "critical path": format_time(critical_path(problem)),
        "work bound": format_time(work_bound(problem)),
        "lower bound": format_time(base.lower_bound),
        "best single": f"{problem.cluster.devices[device].name}: {format_time(single.step_time)}"
        f"{_optimum(base.gap(single))}, {fits} in memory: {peak}",
        **_examples(problem.graph, single.step_time),
    }
    if base.infeasibility is not None:
        pairs["infeasible"] = Text(base.infeasibility, style="red")
    return _pairs(pairs)


def list_tables(
    graphs: Mapping[str, ComputationGraph],
    clusters: Mapping[str, Cluster],
    policies: Sequence[str],
) -> list[Table]:
    """What ships with the package, by name; families and placers are those of their registries."""
    columns = ["name", "ops", "groups", "kind", "source"]
    graph_table = empty_table("graphs", columns, left=("name", "kind", "source"))
    for name, graph in graphs.items():
        meta = (graph.meta.get(key) or "-" for key in ("kind", "source"))
        graph_table.add_row(name, str(graph.num_ops), str(num_groups(graph)), *meta)
    columns = ["name", "graphs", "what they are"]
    family_table = empty_table("families", columns, left=("name", "what they are"))
    for name, family in FAMILIES.items():
        family_table.add_row(name, str(SIZE), family.summary)
    columns = ["name", "devices", "source"]
    preset_table = empty_table("clusters", columns, left=columns)
    preset_table.expand = True
    _, devices, source = preset_table.columns
    devices.max_width = 28
    # One line of the source: what does not fit is cut, --json has it whole.
    source.ratio, source.no_wrap, source.overflow = 1, True, "ellipsis"
    for name, cluster in clusters.items():
        counts = Counter((device.kind, device.memory_bytes) for device in cluster.devices)
        kinds = (f"{count} {kind} {format_bytes(size)}" for (kind, size), count in counts.items())
        preset_table.add_row(name, ", ".join(kinds), " ".join(cluster.source.split()))
    columns = ["name", "what it does"]
    placer_table = empty_table("placers", columns, left=columns)
    for placer in PLACERS.values():
        placer_table.add_row(placer.name, placer.summary)
    policy_table = empty_table("policies", ["name"], left=("name",))
    for name in policies:
        policy_table.add_row(name)
    tables = [graph_table, family_table, preset_table, placer_table, policy_table]
    return tables if policies else tables[:-1]


def format_time(seconds: float | None) -> str:
    """Seconds for a person; a dash for null, and where infinite."""
    return "-" if seconds is None else format_seconds(seconds)


def format_rate(rate: float | None) -> str:
    """Examples a second to three digits or more; a dash for null."""
    if rate is None:
        return "-"
    return f"{rate:.0f}" if rate >= 99.95 else f"{rate:.3g}"


def format_ratio(ratio: float | None) -> str:
    """A ratio to three decimals; a dash for null."""
    return "-" if ratio is None else f"{ratio:.3f}"


def format_share(share: float | None) -> str:
    """A share as percent; a dash for null."""
    return "-" if share is None else f"{share:.1%}"


def format_peak(peaks: Sequence[int] | Ints, limits: Sequence[int] | Ints) -> str:
    """Peak memory of the fullest device, of its limit."""
    device = fullest(peaks, limits)
    return f"{format_bytes(peaks[device])} of {format_bytes(limits[device])}"


def _in_one_unit(text: str) -> str:
    """`3/12 GiB` for `3 GiB of 12 GiB`: a table of all placers is then 80 letters wide."""
    part, unit, _, whole, other = text.split()
    return f"{part}/{whole} {unit}" if unit == other else text


def _fit(placement: Placement) -> Text:
    """Whether a placement is feasible, and if not, why."""
    if placement.feasible:
        return Text("yes")
    return Text("OOM" if np.isfinite(placement.step_time) else "cannot run", style="red")


def _flops(count: float) -> str:
    """Floating-point operations for a person."""
    for prefix, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{count / scale:.4g} {prefix}FLOP"
    return f"{count:.4g} FLOP"


def _ratio_cell(row: EvaluationRow | None) -> str | Text:
    if row is None:
        return "-"
    return format_ratio(row["ratio"]) if row["feasible"] else Text("OOM", style="red")


def _optimum(gap: float | None) -> str:
    return "" if gap is None else f", at most {gap:.3f} times the optimum"


def _examples(graph: ComputationGraph, step_time: float) -> dict[str, str]:
    """What a table of one placement says of examples a second, where that is known."""
    rate = examples_per_second(graph, step_time)
    return {} if rate is None else {"examples": f"{format_rate(rate)} a second"}


def _single(base: Baseline) -> str:
    fits = "" if base.single.feasible else " if it had the memory"
    return f"{format_time(base.single.seconds)}, the best single device{fits}"


def _pairs(pairs: Mapping[str, str | Text]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value if isinstance(value, Text) else Text(value))
    return table


def empty_table(
    title: str,
    columns: Sequence[str],
    left: Sequence[str],
    whole: Sequence[str] = (),
    caption: str | None = None,
) -> Table:
    """An empty table: `left` are the columns of text, those of `whole` are never folded."""
    table = Table(
        title=title or None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        pad_edge=False,
    )
    for name in columns:
        justify: JustifyMethod = "left" if name in left else "right"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in whole)
    return table
