"""The tables of `results/speed.md`."""

from benchmarks.markdown import table
from benchmarks.speed.figures import Document, number, ratio
from benchmarks.speed.simulation import PLACEMENTS
from benchmarks.speed.targets import reached


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
        "What was asked for": table(["figure", "wanted", "reached"], reached(document)),
    }
    return "\n".join(f"{title}:\n\n{text}" for title, text in sections.items())


def simulations(document: Document) -> str:
    """A row a graph and grouping."""
    header = ["graph, groups", "ops", *PLACEMENTS, "in a batch, all cores", "one group moved",
              "compile, ms", "memory, MB"]  # fmt: skip
    rows = [
        [
            f"`{row['graph']}`, {_groups(row)}",
            f"{row['ops']:,}",
            *(number(row["one"][kind]["fastest"] * 1e6) for kind in PLACEMENTS),
            number(row["batch"]["all cores"]["fastest"] * 1e6),
            number(row["one change"]["fastest"] * 1e6),
            number(row["compile"]["fastest"] * 1e3),
            number(row["peak_memory_bytes"] / 1e6),
        ]
        for row in document["simulation"]
    ]
    return table(header, rows)


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
    names = ("gym.make", "unwrapped", "vector", "reference")
    rows = []
    for row in document["environment"]:
        for kind, actions in (("any", "any"), ("moves", "moves only")):
            steps = [number(1 / row[kind][name]["fastest"]) for name in names]
            ratios = [number(ratio(row[kind], name)) for name in ("unwrapped", "vector")]
            rows.append([f"`{row['graph']}`, {_groups(row)}", actions, *steps, *ratios])
    header = ["graph, groups", "actions", "`gym.make`", "`.unwrapped`", "`gym.make_vec`, 64",
              "reference", "ratio, `.unwrapped`", "ratio, 64"]  # fmt: skip
    return table(header, rows)


def trainings(document: Document) -> str:
    """A row a configuration."""
    parts = ("simulation", "features", "policy", "gradient", "other")
    rows = [
        [
            name,
            number(row["steps_per_second"]),
            number(row["evaluations"]),
            *(f"{row['shares'][part]:.0%}" for part in parts),
        ]
        for name, row in document["training"].items()
    ]
    return table(["settings", "steps a second", "simulations a step", *parts], rows)


def _groups(row: Document) -> str:
    return f"`{row['grouping']}` ({row['groups']:,})"
