"""What speed was asked for, and what is reached."""

from collections.abc import Sequence

from benchmarks.speed.figures import Document, number, ratio
from benchmarks.speed.simulation import GROUPINGS, PLACEMENTS


def reached(document: Document) -> list[list[str]]:
    """Rows of what is measured, what was wanted, and the figure found."""
    environment = document["environment"][0]["any"]
    training = ", ".join(
        f"{number(row['steps_per_second'])} ({name})" for name, row in document["training"].items()
    )
    return [
        ["64 environments on all cores, over reference", "1,000", _ratio(environment, "vector")],
        ["one environment on one core, likewise", "300", _ratio(environment, "unwrapped")],
        ["80,000 ops, expert placement, ms", "10", _slowest(document, "80k", ("expert",))],
        ["80,000 ops, slowest kind of placement, ms", "10", _slowest(document, "80k")],
        ["1,000,000 ops, expert placement, ms", "300", _slowest(document, "1m", ("expert",))],
        ["1,000,000 ops, slowest kind of placement, ms", "300", _slowest(document, "1m")],
        ["memory of that process, GB", "2", _memory(document)],
        ["growth from 10,000 to 1,000,000 ops over linear, expert placement", "1.5",
         _growth(document, ("expert",))],
        ["likewise, kind of placement that grows fastest", "1.5", _growth(document)],
        ["training steps a second", "5,000", training],
        ["seconds of a new process to its first step time", "1", _first_calls(document)],
    ]  # fmt: skip


def _ratio(environment: Document, name: str) -> str:
    medians = ratio(environment, name, "median")
    return f"{number(ratio(environment, name))} ({number(medians)} by medians)"


def _slowest(document: Document, size: str, kinds: Sequence[str] = PLACEMENTS) -> str:
    """Milliseconds a simulation of that of some kinds of placements that takes longest."""
    slowest = {}
    for grouping in GROUPINGS:
        one = _synthetic(document, size, grouping)["one"]
        slowest[grouping] = max(one[kind]["fastest"] for kind in kinds) * 1e3
    return _by_grouping(slowest)


def _memory(document: Document) -> str:
    return _by_grouping({
        grouping: _synthetic(document, "1m", grouping)["peak_memory_bytes"] / 1e9
        for grouping in GROUPINGS
    })  # fmt: skip


def _growth(document: Document, kinds: Sequence[str] = PLACEMENTS) -> str:
    """Times over linear, of that of some kinds of placements that grows fastest."""
    growth = {}
    for grouping in GROUPINGS:
        small, big = (_synthetic(document, size, grouping) for size in ("10k", "1m"))
        times = max(big["one"][kind]["fastest"] / small["one"][kind]["fastest"] for kind in kinds)
        growth[grouping] = times / (big["ops"] / small["ops"])
    return _by_grouping(growth)


def _first_calls(document: Document) -> str:
    found = document["first_call"]
    return ", ".join(
        f"{number(found[name]['fastest'])} (`{name}`)" for name in ("simulate", "step_times")
    )


def _synthetic(document: Document, size: str, grouping: str) -> Document:
    return next(
        row
        for row in document["simulation"]
        if (row["graph"], row["grouping"]) == (f"synthetic_{size}", grouping)
    )


def _by_grouping(figures: dict[str, float]) -> str:
    return ", ".join(f"{number(figure)} (`{grouping}`)" for grouping, figure in figures.items())
