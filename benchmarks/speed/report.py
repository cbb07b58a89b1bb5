"""The tables of `results/speed.md`."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchmarks.output import table, table_of
from benchmarks.speed.semantics import VERSIONS, over_version_1
from benchmarks.speed.simulation import PLACEMENTS

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
        "Microseconds a simulation of a placement in blocks, of a batch of 64 on one core, groups "
        "`auto`, without and with what transfers cost their ends": semantics(document),
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
        if row["grouping"] == "auto":
            ours = row["one"]["random"]["fastest"]
            cells = [f"`{row['graph']}`", number(ours * 1e6)]
            for name in ("reference", "grappler"):
                theirs = row["compared"].get(name, {}).get("random", {"fastest": 0})["fastest"]
                cells += [number(theirs * 1e6), number(theirs / ours)] if theirs else ["-", "-"]
            rows.append(cells)
    return table(["graph", "`placeto`", "plain Python", "ratio", "Grappler", "ratio"], rows)


def semantics(document: Document) -> str:
    """A row a graph: version 1 of the semantics, and what version 2 takes."""
    rows = []
    for row in document["semantics"]:
        cells = [number(row["times"][version]["fastest"] * 1e6) for version in VERSIONS]
        ratios = [number(over_version_1(row["times"], version)) for version in VERSIONS[1:]]
        rows.append([f"`{row['graph']}`", *cells, *ratios])
    ratios = [f"{version}, ratio" for version in VERSIONS[1:]]
    return table(["graph", *VERSIONS, *ratios], rows)


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
    rows = [
        [name, number(row["steps_per_second"]), number(row["evaluations"])]
        + [f"{row['shares'][part]:.0%}" for part in parts]
        for name, row in document["training"].items()
    ]
    return table(["settings", "steps a second", "simulations a step", *parts], rows)


def targets(document: Document) -> list[list[str]]:
    """Rows of what is measured, what was wanted, and the figure found."""
    environment, first_call = document["environment"][0]["any"], document["first_call"]
    simulated = pd.DataFrame(document["simulation"]).set_index(["graph", "grouping"])
    small, middle, big = "synthetic_10k", "synthetic_80k", "synthetic_1m"
    ms = {kind: [1e3 * each[kind]["fastest"] for each in simulated["one"]] for kind in PLACEMENTS}
    times = pd.DataFrame(ms, simulated.index)
    linear = simulated.loc[big, "ops"] / simulated.loc[small, "ops"]
    growth = (times.loc[big] / times.loc[small]).div(linear, axis=0)
    slowest, memory = times.max(axis=1), simulated.loc[big, "peak_memory_bytes"] / 1e9

    def over_reference(name: str) -> str:
        fastest, medians = (ratio(environment, name, of) for of in ("fastest", "median"))
        return f"{number(fastest)} ({number(medians)} by medians)"

    def named(figures: "Mapping[str, float] | pd.Series[float]") -> str:
        return ", ".join(f"{number(each)} ({name})" for name, each in figures.items())

    def by_grouping(figures: "pd.Series[float]") -> str:
        return named(figures.rename("`{}`".format))

    first = {f"`{name}`": first_call[name]["fastest"] for name in ("simulate", "step_times")}
    training = {name: row["steps_per_second"] for name, row in document["training"].items()}
    return [
        ["64 environments on all cores, over reference", "1,000", over_reference("vector")],
        ["one environment on one core, likewise", "300", over_reference("unwrapped")],
        ["80,000 ops, expert placement, ms", "10", by_grouping(times.loc[middle]["expert"])],
        ["80,000 ops, slowest kind of placement, ms", "10", by_grouping(slowest.loc[middle])],
        ["1,000,000 ops, expert placement, ms", "300", by_grouping(times.loc[big]["expert"])],
        ["1,000,000 ops, slowest kind of placement, ms", "300", by_grouping(slowest.loc[big])],
        ["memory of that process, GB", "2", by_grouping(memory)],
        ["growth from 10,000 to 1,000,000 ops over linear, expert placement", "1.5",
         by_grouping(growth["expert"])],
        ["likewise, kind of placement that grows fastest", "1.5", by_grouping(growth.max(axis=1))],
        ["training steps a second", "5,000", named(training)],
        ["seconds of a new process to its first step time", "1", named(first)],
    ]  # fmt: skip


def ratio(row: Document, name: str, of: str = "fastest") -> float:
    """How many steps a form of an environment takes while the reference takes one."""
    return float(row["reference"][of] / row[name][of])


def _of(row: Document) -> str:
    return f"`{row['graph']}`, `{row['grouping']}` ({row['groups']:,})"
