"""The tables of `results/speed.md`."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.output import table, table_of
from benchmarks.speed.simulation import GROUPINGS, PLACEMENTS

Document = dict[str, Any]


def number(value: float) -> str:
    """Three significant digits, with commas: 0.0123, 1.23, 12,300."""
    rounded = float(f"{value:.3g}")
    if rounded >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:#.3g}" if rounded else "0"


def markdown(document: Document) -> str:
    """Tables; a time is the fastest of several, training the median of updates."""
    sections = {
        "Microseconds a simulation on `k80x4`, from scratch and on one core but where it says "
        "otherwise": simulations(document),
        "Microseconds a simulation of one random placement, groups `auto`": comparisons(document),
        "Environment steps a second on `k80x4`, beside an environment that runs the plain Python "
        "reference at every step": environments(document),
        "Training steps a second on `inception_v3` and `k80x2`, policy and gradient included, and "
        "where the time goes": trainings(document),
        "What was asked for": table(["figure", "wanted", "reached"], targets(document)),
    }
    return "\n".join(f"{title}:\n\n{text}" for title, text in sections.items())


def simulations(document: Document) -> str:
    """A row a graph and grouping."""
    return table_of([
        {
            "graph, groups": _of(row),
            "ops": f"{row['ops']:,}",
            **{kind: number(row["one"][kind]["fastest"] * 1e6) for kind in PLACEMENTS},
            "in a batch, all cores": number(row["batch"]["all cores"]["fastest"] * 1e6),
            "one group moved": number(row["one change"]["fastest"] * 1e6),
            "compile, ms": number(row["compile"]["fastest"] * 1e3),
            "memory, MB": number(row["peak_memory_bytes"] / 1e6),
        }
        for row in document["simulation"]
    ])  # fmt: skip


def comparisons(document: Document) -> str:
    """A row a graph: the simulator, the plain Python reference, Grappler."""
    rows = []
    for row in document["simulation"]:
        if row["grouping"] != "auto":
            continue
        ours = row["one"]["random"]["fastest"]
        cells = [f"`{row['graph']}`", number(ours * 1e6)]
        for name in ("reference", "grappler"):
            theirs = row["compared"].get(name, {}).get("random", {}).get("fastest")
            cells += ["-", "-"] if theirs is None else [number(theirs * 1e6), number(theirs / ours)]
        rows.append(cells)
    header = ["graph", "`placeto`", "plain Python", "ratio", "Grappler", "ratio"]
    return table(header, rows)


def environments(document: Document) -> str:
    """A row an environment and kind of actions."""
    names = {"gym.make": "`gym.make`", "unwrapped": "`.unwrapped`", "vector": "`gym.make_vec`, 64",
             "reference": "reference"}  # fmt: skip
    return table_of([
        {
            "graph, groups": _of(row),
            "actions": actions,
            **{text: number(1 / row[kind][name]["fastest"]) for name, text in names.items()},
            "ratio, `.unwrapped`": number(ratio(row[kind], "unwrapped")),
            "ratio, 64": number(ratio(row[kind], "vector")),
        }
        for row in document["environment"]
        for kind, actions in (("any", "any"), ("moves", "moves only"))
    ])  # fmt: skip


def trainings(document: Document) -> str:
    """A row a configuration."""
    parts = ("simulation", "features", "policy", "gradient", "other")
    return table_of([
        {
            "settings": name,
            "steps a second": number(row["steps_per_second"]),
            "simulations a step": number(row["evaluations"]),
            **{part: f"{row['shares'][part]:.0%}" for part in parts},
        }
        for name, row in document["training"].items()
    ])  # fmt: skip


def targets(document: Document) -> list[list[str]]:
    """Rows of what is measured, what was wanted, and the figure found."""
    environment, first_call = document["environment"][0]["any"], document["first_call"]
    training = ", ".join(
        f"{number(row['steps_per_second'])} ({name})" for name, row in document["training"].items()
    )
    first = ", ".join(
        f"{number(first_call[name]['fastest'])} (`{name}`)" for name in ("simulate", "step_times")
    )

    def over_reference(name: str) -> str:
        fastest, medians = (ratio(environment, name, of) for of in ("fastest", "median"))
        return f"{number(fastest)} ({number(medians)} by medians)"

    def by_grouping(figure: Callable[..., float], *arguments: object) -> str:
        figures = {}
        for grouping in GROUPINGS:
            own = (row for row in document["simulation"] if row["grouping"] == grouping)
            figures[grouping] = figure({row["graph"]: row for row in own}, *arguments)
        return ", ".join(f"{number(each)} (`{grouping}`)" for grouping, each in figures.items())

    expert = ("expert",)
    return [
        ["64 environments on all cores, over reference", "1,000", over_reference("vector")],
        ["one environment on one core, likewise", "300", over_reference("unwrapped")],
        ["80,000 ops, expert placement, ms", "10", by_grouping(_slowest, "80k", expert)],
        ["80,000 ops, slowest kind of placement, ms", "10", by_grouping(_slowest, "80k")],
        ["1,000,000 ops, expert placement, ms", "300", by_grouping(_slowest, "1m", expert)],
        ["1,000,000 ops, slowest kind of placement, ms", "300", by_grouping(_slowest, "1m")],
        ["memory of that process, GB", "2", by_grouping(_gigabytes)],
        ["growth from 10,000 to 1,000,000 ops over linear, expert placement", "1.5",
         by_grouping(_growth, expert)],
        ["likewise, kind of placement that grows fastest", "1.5", by_grouping(_growth)],
        ["training steps a second", "5,000", training],
        ["seconds of a new process to its first step time", "1", first],
    ]  # fmt: skip


def ratio(row: Document, name: str, of: str = "fastest") -> float:
    """How many steps a form of an environment takes while the reference takes one."""
    return float(row["reference"][of] / row[name][of])


def _slowest(rows: Document, size: str, kinds: Sequence[str] = PLACEMENTS) -> float:
    """Milliseconds a simulation of that of some kinds of placements that takes longest."""
    return 1e3 * max(rows[f"synthetic_{size}"]["one"][kind]["fastest"] for kind in kinds)


def _gigabytes(rows: Document) -> float:
    return float(rows["synthetic_1m"]["peak_memory_bytes"]) / 1e9


def _growth(rows: Document, kinds: Sequence[str] = PLACEMENTS) -> float:
    """Times over linear, of that of some kinds of placements that grows fastest."""
    small, big = rows["synthetic_10k"], rows["synthetic_1m"]
    times = max(big["one"][kind]["fastest"] / small["one"][kind]["fastest"] for kind in kinds)
    return float(times / (big["ops"] / small["ops"]))


def _of(row: Document) -> str:
    return f"`{row['graph']}`, `{row['grouping']}` ({row['groups']:,})"
