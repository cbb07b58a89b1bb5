"""Rich tables: pure functions from rows, as in the JSON, to what is printed."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from placeto.reports.evaluation import EvaluationRow, geometric_means
from placeto.reports.rows import (
    CalibrationRow,
    CandidateRow,
    DeviceRow,
    Listing,
    MeasureRow,
    PlacementRow,
)
from placeto.reports.summary import ClusterSummary, GraphSummary, GroupsSummary
from placeto.support.units import format_bytes, format_seconds


def compare_table(rows: Sequence[PlacementRow]) -> Table:
    """Placers on one problem, one row each; the fastest that fits in memory stands out.

    Args:
        rows: of one graph, cluster and grouping; see `placement_row`.
    """
    first = rows[0]
    # One placer may have proven more than is known beforehand.
    proven = [row["lower_bound"] for row in rows if row["lower_bound"] is not None]
    below = f"no placement that fits is below {format_time(max(proven))}" if proven else "none fits"
    table = _table(
        f"{first['graph']} on {first['cluster']}, {first['num_groups']} groups",
        ["method", "step time", "ratio", "gap", "peak memory", "fits", "placed", "seconds"],
        left=("method", "fits"),
        whole=("method",),
        caption=(
            f"ratio: step time over {format_time(first['single_device_step_time'])}, "
            f"{_single(first)}. Gap: at most so many times the optimum; "
            f"{below}. Peak memory: of the fullest device. "
            "Placed: placements simulated."
        ),
    )
    table.collapse_padding = True
    fitting = [row["step_time"] or 0.0 for row in rows if row["feasible"]]
    for row in rows:
        best = row["feasible"] and (row["step_time"] or 0.0) == min(fitting)
        table.add_row(
            row["method"],
            format_time(row["step_time"]),
            format_ratio(row["ratio"]),
            format_ratio(row["gap"]),
            _in_one_unit(format_peak(row["peak_memory"], row["memory_limit"])),
            format_fit(row),
            str(row["evaluations"]),
            f"{row['wall_seconds']:.1f}",
            style="bold" if best else None,
        )
    return table


def placement_table(row: PlacementRow) -> Table:
    """One placement: how fast, how good, how it was found."""
    pairs: dict[str, str | Text] = {
        "graph": f"{row['graph']}, {row['num_groups']} groups",
        "cluster": f"{row['cluster']}, {len(row['devices'])} devices",
        "method": row["method"] + _settings(row["settings"]),
        "step time": format_time(row["step_time"]) + _optimum(row["gap"]),
        **({"measured": format_time(row["measured_step_time"])} if "measured" in row else {}),
        "ratio": f"{format_ratio(row['ratio'])} of {format_time(row['single_device_step_time'])}, "
        f"{_single(row)}",
        "lower bound": format_time(row["lower_bound"]),
        "fits": format_fit(row),
    }
    alone = len(set(row["placement"])) == 1 < len(row["devices"])
    if alone and row["feasible"] and row["method"] not in ("given", "single"):
        pairs["devices"] = f"one device is enough: {row['placement'][0]}"
    if row["method"] != "given":
        part = "" if row["found_by"] == row["method"] else f"by {row['found_by']} "
        pairs["found"] = (
            f"{part}in {row['wall_seconds']:.1f} s, {row['evaluations']} placements simulated, "
            f"seed {row['seed']}"
        )
    return _pairs(pairs)


def measurement_table(row: MeasureRow) -> Table:
    """A placement that was run: the time of its steps."""
    low, high = row["interval"]
    return _pairs(
        {
            "graph": row["graph"],
            "cluster": row["cluster"],
            "step time": f"{format_time(row['step_time'])}, median of {len(row['samples'])} steps",
            "interval": f"{format_time(low)} to {format_time(high)} (95% of the median)",
            "deviation": f"{format_time(row['deviation'])}, median absolute",
            "simulated": format_time(row["simulated_step_time"]),
            "as simulated": _conduct(row),
        }
    )


def _conduct(row: MeasureRow) -> str:
    """Whether the order was kept and how long tensors waited, in one line."""
    waits = "none is sent"
    if row["send_wait"] is not None:
        waits = f"wait {format_time(row['send_wait'])} to be sent"
    return f"{format_share(row['in_order'])} of pairs of ops in order, tensors: {waits}"


def candidates_table(rows: Sequence[CandidateRow]) -> Table:
    """Placements that were run for real, the one that was kept stands out; see `keep_fastest`."""
    table = _table(
        "measured",
        ["method", "simulated", "measured", "median between", ""],
        left=("method", ""),
        caption="Between: with 95% confidence, or of all steps where they are few.",
    )
    for row in rows:
        low, high = row["interval"]
        between = f"{format_time(low)} and {format_time(high)}" if row["feasible"] else "-"
        table.add_row(
            row["method"],
            format_time(row["simulated_step_time"]),
            format_time(row["step_time"]),
            between,
            "kept" if row["kept"] else row["reason"],
            style="bold" if row["kept"] else None,
        )
    return table


def evaluation_tables(policy: str, rows: Sequence[EvaluationRow]) -> list[Table]:
    """A policy and placers on many problems: a table a cluster, and one of the means.

    Args:
        policy: what it is called.
        rows: see `evaluation_row`.
    """
    clusters = dict.fromkeys(row["cluster"] for row in rows)
    tables = [
        _cluster_evaluation(policy, cluster, [row for row in rows if row["cluster"] == cluster])
        for cluster in clusters
    ]
    means = _table(
        "all problems",
        ["method", "geometric mean", "fits", "seconds"],
        left=("method",),
        caption=(
            "Geometric mean: of step time over that of the best single device, of placements that "
            "fit in memory. Seconds: to find a placement, on average."
        ),
    )
    for mean in geometric_means(rows):
        means.add_row(
            mean["method"],
            format_ratio(mean["ratio"]),
            f"{mean['problems'] - mean['infeasible']} of {mean['problems']}",
            f"{mean['wall_seconds']:.2f}",
        )
    return [*tables, means]


def _cluster_evaluation(policy: str, cluster: str, rows: Sequence[EvaluationRow]) -> Table:
    means = {mean["method"]: mean["ratio"] for mean in geometric_means(rows)}
    methods = [method for method in means if method != "single"]
    table = _table(
        f"{policy} on {cluster}",
        ["graph", "single", *methods],
        left=("graph",),
        whole=("graph", "single"),
        caption=(
            "single: step time of the best single device, in brackets where it does not fit in "
            "memory. Other columns: step time over that; OOM where it does not fit."
        ),
    )
    table.collapse_padding = True  # one column a method: there may be many
    for graph in dict.fromkeys(row["graph"] for row in rows):
        found = {row["method"]: row for row in rows if row["graph"] == graph}
        ratios = [_ratio_cell(found.get(method)) for method in methods]
        alone = format_time(found["single"]["step_time"])
        table.add_row(graph, alone if found["single"]["feasible"] else f"({alone})", *ratios)
    table.add_section()
    ratios = [format_ratio(means[method]) for method in methods]
    table.add_row("geometric mean", "", *ratios, style="bold")
    return table


def calibration_tables(row: CalibrationRow) -> list[Table]:
    """What was measured of a cluster; see `placeto calibrate --json`."""
    devices = _table(
        "", ["device", "kind", "overhead an op", "overhead a step"], left=("device", "kind")
    )
    for device in row["devices"]:
        overheads = (device["op_overhead"], device["step_overhead"])
        devices.add_row(device["device"], device["kind"], *map(format_time, overheads))
    channels = _table(
        "", ["channel", "bandwidth", "latency", "overhead", "off by"], left=("channel",)
    )
    for channel in row["channels"]:
        channels.add_row(
            channel["channel"],
            f"{format_bytes(channel['bandwidth'])}/s",
            format_time(channel["latency_seconds"]),
            format_time(channel["overhead_seconds"]),
            format_share(channel["error"]),
        )
    graphs = _table(
        "",
        ["all ops of", "on", "step", "stretch", "predicted", "again", "tries"],
        left=("all ops of", "on"),
        caption="Stretch: of the kernels' times. Again: a step that ran when all was measured.",
    )
    for graph in row["graphs"]:
        graphs.add_row(
            graph["graph"],
            graph["device"],
            format_time(graph["measured"]),
            format_ratio(graph["stretch"]),
            format_time(graph["predicted"]),
            format_time(graph["again"]),
            str(graph["tries"]),
        )
    return [devices, *([channels] if row["channels"] else []), graphs]


def _settings(settings: Mapping[str, object]) -> str:
    pairs = ", ".join(f"{name}={str(value).lower()}" for name, value in settings.items())
    return f" ({pairs})" if pairs else ""


def device_table(rows: Sequence[DeviceRow]) -> Table:
    """What each device has of a placement; see `device_rows`."""
    table = _table(
        "", ["device", "kind", "groups", "ops", "work", "peak memory"], left=("device", "kind")
    )
    for row in rows:
        table.add_row(
            row["device"],
            row["kind"],
            str(row["groups"]),
            str(row["ops"]),
            format_time(row["work_seconds"]),
            format_peak([row["peak_memory"]], [row["memory_limit"]]),
        )
    return table


def graph_tables(summary: GraphSummary) -> list[Table]:
    """A graph: sizes, seconds a device kind, op types; see `graph_summary`."""
    pairs = {
        "graph": summary["graph"],
        "kind": str(summary["kind"] or "-"),
        "source": str(summary["source"] or "-"),
        "ops": str(summary["ops"]),
        "tensors": f"{summary['tensors']}, {summary['control_dependencies']} of them "
        "control dependencies",
        "edges": str(summary["edges"]),
        "tensor bytes": format_bytes(summary["tensor_bytes"]),
        "parameters": format_bytes(summary["param_bytes"]),
        "work": format_flops(summary["flops"]),
        "op seconds": ", ".join(
            f"{kind} {format_time(time)}"
            + (f" (cannot run {cannot} ops)" if (cannot := summary["cannot_run"].get(kind)) else "")
            for kind, time in summary["op_seconds"].items()
        )
        or "-",
    }
    where = f" on {summary['type_kind']}" if summary["type_kind"] else ""
    if where and "on_cluster" not in summary:  # which has one of its own
        pairs["critical path"] = f"{format_time(summary['critical_path'])}{where}"
    types = _table(f"op types by time{where}", ["type", "ops", "time", "share"], left=("type",))
    for row in summary["types"]:
        types.add_row(
            row["type"], str(row["ops"]), format_time(row["seconds"]), format_share(row["share"])
        )
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


def cluster_table(summary: ClusterSummary) -> Table:
    """What a cluster can make of a graph; see `cluster_summary`."""
    nowhere = summary["infeasibility"]
    peak = format_peak(
        [summary["single_device_peak_memory"]], [summary["single_device_memory_limit"]]
    )
    fits = "fits" if summary["single_device_feasible"] else "does not fit"
    return _pairs(
        {
            "cluster": summary["cluster"],
            "critical path": format_time(summary["critical_path"]),
            "work bound": format_time(summary["work_bound"]),
            "lower bound": format_time(summary["lower_bound"]),
            "best single": f"{summary['single_device']}: "
            f"{format_time(summary['single_device_step_time'])}"
            f"{_optimum(summary['single_device_gap'])}, {fits} in memory: {peak}",
        }
        | ({} if nowhere is None else {"infeasible": Text(nowhere, style="red")})
    )


def list_tables(listing: Listing) -> list[Table]:
    """What ships with the package; the tables of `list`."""
    graphs = _table("graphs", ["name", "ops", "groups", "kind", "source"], right=("ops", "groups"))
    for graph in listing["graphs"]:
        graphs.add_row(
            graph["name"],
            str(graph["ops"]),
            str(graph["groups"]),
            graph["kind"] or "-",
            graph["source"] or "-",
        )
    families = _table("families", ["name", "graphs", "what they are"], right=("graphs",))
    for family in listing["families"]:
        families.add_row(family["name"], str(sum(family["graphs"].values())), family["summary"])
    clusters = _table("clusters", ["name", "devices", "source"])
    clusters.expand = True
    devices, source = clusters.columns[1:]
    devices.max_width = 28
    # One line of the source: what does not fit is cut, --json has it whole.
    source.ratio, source.no_wrap, source.overflow = 1, True, "ellipsis"
    for cluster in listing["clusters"]:
        clusters.add_row(
            cluster["name"],
            ", ".join(
                f"{count} {kind} {format_bytes(size)}"
                for (kind, size), count in Counter(
                    (device["kind"], device["memory_bytes"]) for device in cluster["devices"]
                ).items()
            ),
            " ".join(cluster["source"].split()),
        )
    placers = _table("placers", ["name", "what it does"])
    for placer in listing["placers"]:
        placers.add_row(placer["name"], placer["summary"])
    tables = [graphs, families, clusters, placers]
    if listing["policies"]:
        policies = _table("policies", ["name"])
        for policy in listing["policies"]:
            policies.add_row(policy["name"])
        tables.append(policies)
    return tables


def format_time(seconds: float | None) -> str:
    """Seconds for a person; a dash for null."""
    return "-" if seconds is None else format_seconds(seconds)


def format_ratio(ratio: float | None) -> str:
    """A ratio to three decimals; a dash for null."""
    return "-" if ratio is None else f"{ratio:.3f}"


def format_share(share: float | None) -> str:
    """A share as percent; a dash for null."""
    return "-" if share is None else f"{share:.1%}"


def format_peak(peaks: Sequence[int], limits: Sequence[int]) -> str:
    """Peak memory of the fullest device, of its limit."""
    # A limit of 0 bytes counts as 1, so that it can be divided by.
    fullest = int(np.argmax(np.asarray(peaks) / np.maximum(limits, 1)))
    return f"{format_bytes(peaks[fullest])} of {format_bytes(limits[fullest])}"


def _in_one_unit(text: str) -> str:
    """`3 of 12 GiB` for `3 GiB of 12 GiB`: a table of all placers is then 80 letters wide."""
    part, unit, of, whole, other = text.split()
    return f"{part} {of} {whole} {unit}" if unit == other else text


def format_fit(row: PlacementRow) -> Text:
    """Whether a placement is feasible, and if not, why."""
    if row["feasible"]:
        return Text("yes")
    return Text("OOM" if row["step_time"] is not None else "cannot run", style="red")


def format_flops(count: float) -> str:
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
    return "" if gap is None else f", at most {format_ratio(gap)} times the optimum"


def _single(row: PlacementRow) -> str:
    fits = "" if row["single_device_feasible"] else " if it had the memory"
    return f"the best single device{fits}"


def _pairs(pairs: Mapping[str, str | Text]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value if isinstance(value, Text) else Text(value))
    return table


def _table(
    title: str,
    columns: Sequence[str],
    left: Sequence[str] | None = None,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    caption: str | None = None,
) -> Table:
    """An empty table; the columns `whole` are never folded."""
    table = Table(
        title=title or None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        pad_edge=False,
    )
    for name in columns:
        is_left = name not in right if left is None else name in left
        justify: JustifyMethod = "left" if is_left else "right"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in whole)
    return table
