"""What a person sees of a training run while it goes on."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from placeto.cli.output import progress
from placeto.support.progress import Progress as Say
from placeto.support.units import format_seconds

if TYPE_CHECKING:
    from placeto.training import UpdateReport

Watch = Callable[["UpdateReport", float], None]

LABEL = "train"
ROWS = 8  # problems that are shown at most: those of the latest updates


@contextlib.contextmanager
def training_view(updates: int) -> Iterator[tuple[Say, Watch | None]]:
    """Yields what a run tells of itself to: lines, and reports of its updates.

    On a terminal the run is drawn in place, and what it came to stays. Elsewhere there are lines
    (see `progress`), and nothing watches reports.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        with TrainingView(updates, Console(stderr=True)) as view:
            yield view.say, view.watch
        return
    with progress(LABEL) as report:
        yield report, None


class TrainingView(Progress):
    """A run as it is drawn while a `with` block lasts: how far it is, each problem's latest."""

    def __init__(self, updates: int, console: Console) -> None:
        self._message = ""
        self._latest: dict[tuple[str, str], UpdateReport] = {}
        super().__init__(
            TextColumn(LABEL),
            BarColumn(bar_width=None),
            TextColumn("{task.completed}/{task.total} updates"),
            TextColumn("{task.fields[left]}"),
            console=console,
            refresh_per_second=4,
            expand=True,
        )
        self._run = self.add_task("", total=updates, left="")

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
        left = f"{timedelta(seconds=round(max(seconds_left, 0)))} left"
        self.update(self._run, completed=report.update, left=left)

    def get_renderables(self) -> Iterable[RenderableType]:
        """What the terminal shows."""
        yield self.make_tasks_table(self.tasks)
        if self._latest:
            yield self._table()
        if self._message:
            yield Text(self._message, overflow="ellipsis", no_wrap=True, style="dim")

    def _table(self) -> Table:
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
