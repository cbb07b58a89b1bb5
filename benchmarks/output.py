"""What studies read from the command line and write: tables, results files, pictures."""

import argparse
import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placeto.support.files import write_bytes

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"


def command_line(name: str, quick: str, description: str | None = None) -> argparse.ArgumentParser:
    """The parser of `python -m benchmarks.NAME`, with `--quick` and what that does."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def machine() -> str:
    """The machine, in words."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def table_of(rows: Sequence[dict[str, str]]) -> str:
    """A table of rows, column -> cell."""
    return table(list(rows[0]), [list(row.values()) for row in rows])


def span(values: Sequence[float], spec: str = ".0f", scale: float = 1e3) -> str:
    """The least and the greatest of some values: by default of seconds, in milliseconds."""
    return f"{min(values) * scale:{spec}} to {max(values) * scale:{spec}}"


def save(
    name: str, found: dict[str, Any], page: str, folder: Path = RESULTS, indent: int | None = None
) -> None:
    """Writes `NAME.json`, with the command, and `NAME.md`, and prints the page."""
    document = {"command": f"python -m benchmarks.{name}", **found}
    write_bytes(folder / f"{name}.json", f"{json.dumps(document, indent=indent)}\n".encode())
    write_bytes(folder / f"{name}.md", page.encode())
    print(page, end="")


def results_folder(quick: bool) -> Path:
    """Where results go; those of a quick study into `build`, which is made."""
    folder = Path("build") if quick else RESULTS
    folder.mkdir(exist_ok=True)
    return folder


def picture_of(name: str, folder: Path) -> Path:
    """Where a picture belongs if the results go to `folder`; that of committed ones to the docs."""
    return (DOCS if folder == RESULTS else folder) / f"{name}.png"


@contextmanager
def picture(
    path: Path, figsize: tuple[float, float], dpi: int = 120, **options: Any
) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, which end up as a PNG; `options` are those of `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize, layout="constrained")
    yield figure, figure.subplots(squeeze=False, **options)
    figure.savefig(path, dpi=dpi, metadata={"Software": None})


@contextmanager
def panels(
    path: Path, count: int, size: tuple[float, float], **legend: Any
) -> Iterator[Sequence[Any]]:
    """So many axes, two side by side, and one legend below; `size` of each, in inches."""
    lines, columns = max(-(-count // 2), 1), max(min(count, 2), 1)
    figsize = size[0] * columns, size[1] * lines
    with picture(path, figsize, nrows=lines, ncols=columns) as (figure, axes):
        yield axes.flat[:count]
        for ax in axes.flat[count:]:
            ax.set_axis_off()
        labelled = {}
        for ax in axes.flat:
            labelled |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", **legend)
