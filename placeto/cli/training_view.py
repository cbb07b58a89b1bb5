"""What a person sees of a training run while it goes on."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from placeto.cli.progress import Progress, progress
from placeto.support.units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from placeto.training import UpdateReport

Watch = Callable[["UpdateReport", float], None]

LABEL = "train"
ROWS = 8
"""Problems that are shown at most: those of the latest updates."""


@contextlib.contextmanager
def training_view(updates: int) -> Iterator[tuple[Progress, Watch | None]]:
    """Yields what a run tells of itself to: lines, and reports of its updates.

    On a terminal the run is drawn in place, and what it came to stays. Elsewhere there are lines
    (see `progress`), and nothing watches reports.

    Args:
        updates: of the whole run.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        with live_view(updates, Console(stderr=True)) as view:
            yield view.say, view.watch
        return
    with progress(LABEL) as report:
        yield report, None


@contextlib.contextmanager
def live_view(updates: int, console: "Console") -> "Iterator[TrainingView]":
    """Draws a run on a terminal while the block lasts."""
    from rich.live import Live

    view = TrainingView(updates)
    with Live(get_renderable=view.drawn, console=console, refresh_per_second=4):
        yield view


class TrainingView:
    """A run as it is drawn: how far it is, and of each problem the latest update.

    Args:
        updates: of the whole run.
    """

    def __init__(self, updates: int) -> None:
        self._updates = updates
        self._done = 0
        self._seconds_left: float | None = None
        self._message = ""
        self._latest: dict[tuple[str, str], UpdateReport] = {}

    def say(self, message: str) -> None:
        """Shows a line, until the next; what was said before the first update, until that."""
        self._message = message

    def watch(self, report: "UpdateReport", seconds_left: float) -> None:
        """Shows an update, and what is left."""
        if not self._latest:
            self._message = ""
        key = report.graph, report.cluster
        self._latest.pop(key, None)
        self._latest[key] = report
        self._done, self._seconds_left = report.update, seconds_left

    def drawn(self) -> "Group":
        """What the terminal shows."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Table.grid(padding=(0, 2, 0, 0), expand=True)
        for ratio in (None, 1, None, None):
            head.add_column(no_wrap=True, ratio=ratio)
        left = "" if self._seconds_left is None else f"{format_clock(self._seconds_left)} left"
        head.add_row(
            LABEL,
            ProgressBar(total=self._updates, completed=self._done),
            f"{self._done}/{self._updates} updates",
            left,
        )
        parts: list[Table | Text] = [head]
        if self._latest:
            parts.append(self._table())
        if self._message:
            parts.append(Text(self._message, overflow="ellipsis", no_wrap=True, style="dim"))
        return Group(*parts)

    def _table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("graph", no_wrap=True, overflow="ellipsis")
        for name in ("step time", "best", "entropy", "gradient", "steps/s"):
            table.add_column(name, justify="right", no_wrap=True)
        latest = [*self._latest.values()]  # at once: this is drawn in a thread of its own
        several = len({report.cluster for report in latest}) > 1
        for report in sorted(latest[-ROWS:], key=lambda each: (each.graph, each.cluster)):
            name = f"{report.graph} on {report.cluster}" if several else report.graph
            table.add_row(
                Text(name),
                format_seconds(report.step_time),
                Text(format_seconds(report.best_step_time), style="bold"),
                f"{report.entropy:.2f}",
                f"{report.gradient_norm:.2f}",
                f"{report.steps_per_second:,.0f}",
            )
        return table


def format_clock(seconds: float) -> str:
    """Seconds as `m:ss`, or `h:mm:ss` from an hour on."""
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
