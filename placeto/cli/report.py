"""`placeto place --report`: the page about a placement."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from placeto.cli.output import note
from placeto.cli.progress import progress
from placeto.placement import Placement
from placeto.problem import PlacementProblem
from placeto.reports.page import RunContext, make_report, save_report
from placeto.reports.rows import Baseline, CandidateRow
from placeto.support.errors import PlacetoError
from placeto.support.units import format_seconds

if TYPE_CHECKING:
    from placeto.cli.place import Place


def check_report(problem: PlacementProblem) -> None:
    """Makes sure, before a long search, that there will be a step to report.

    Raises:
        PlacetoError: no op takes any time.
    """
    if not (np.isfinite(problem.op_seconds) & (problem.op_seconds > 0)).any():
        raise PlacetoError(
            f"--report: no op of {problem.graph.name!r} takes any time; give it op_seconds"
        )


def write_report(
    arguments: "Place", placement: Placement, base: Baseline, measured: Sequence[CandidateRow]
) -> bool:
    """Writes the page to `arguments.report`, and says what it took.

    Args:
        arguments: of the command that found the placement.
        placement: what it found.
        base: what the placement is measured by.
        measured: placements that were run for real.

    Returns:
        Whether it was written; it is not after Ctrl-C.

    Raises:
        PlacetoError: the page cannot be written, or the placement's step never ends.
    """
    assert arguments.report is not None
    context = RunContext(
        command=command(arguments),
        grouping=arguments.grouping,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        measured=tuple(measured),
    )
    try:
        with progress(f"report of {placement.problem.graph.name}") as tell:
            report = make_report(placement, base, context, progress=tell)
            save_report(report, arguments.report)
    except KeyboardInterrupt:
        note("interrupted; there is no report")
        return False
    note(f"the report is in {arguments.report}; it took {format_seconds(report.seconds)} more")
    return True


def command(arguments: "Place") -> str:
    """The command that finds a placement again, without the files that it writes."""
    words = ["placeto", "place", arguments.graph, "--cluster", arguments.cluster]
    words += ["--grouping", arguments.grouping]
    for option, name in (("--method", arguments.method), ("--policy", arguments.policy)):
        if name is not None:
            words += [option, name]
    words += ["--budget", f"{arguments.budget:g}", "--seed", str(arguments.seed)]
    for option, values in (("--set", arguments.settings), ("--pin", arguments.pin)):
        for value in values:
            words += [option, value]
    if arguments.measure is not None:
        words += ["--measure", *map(str, arguments.measure)]
    return shlex.join(words)
