"""Whether a run minds that its workers are killed: `python -m benchmarks.ray_faults`.

Trains twice with the same settings, once left alone and once with a worker killed every 20
seconds, synchronously (two workers) and asynchronously (two controllers with a worker each), for
about two minutes each. Says what was found, and whether every update and every checkpoint is
there. Writes `results/ray_faults.json` and `.md`; the exit status is 1 if something was lost.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks.markdown import table
from benchmarks.processes import ray_workers
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.models.settings import LearningConfig
from placeto.support.units import format_seconds
from placeto.training import Trainer
from placeto.training.distributed import Scheme, train_with_workers
from placeto.training.trainer import UpdateReport

RESULTS = Path(__file__).parent / "results"
CHECKPOINT_EVERY = 2

SCHEMES: dict[str, tuple[Scheme, Callable[..., LearningConfig]]] = {
    "synchronous, 2 workers": (Scheme(2), Placeto2019Config),
    "asynchronous, 2 controllers": (Scheme(1, "asynchronous", 2), ColocRLConfig),
}


def faults(seconds: float, every: float) -> list[dict[str, Any]]:
    """A row for each scheme.

    Args:
        seconds: about how long each run takes.
        every: seconds between two kills.
    """
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 48)
    rows = []
    for name, (scheme, kind) in SCHEMES.items():
        updates = _updates(problem, kind, seconds)
        config = kind(updates=updates, checkpoint_every=CHECKPOINT_EVERY)
        alone = one_run(problem, config, scheme, None)
        killed = one_run(problem, config, scheme, every)
        rows.append({"scheme": name, "updates": updates, "alone": alone, "killed": killed})
    return rows


def one_run(
    problem: PlacementProblem, config: LearningConfig, scheme: Scheme, every: float | None
) -> dict[str, Any]:
    """`best` step time in seconds, `kills`, `seconds`, and what was `lost`: nothing, in a good run.

    Args:
        problem: what is placed.
        config: how to train.
        scheme: with what workers.
        every: seconds between two kills; None for none. A run that is half over before the first
            is held until then.
    """
    lost: list[str] = []
    seen: list[int] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, _killer(every) as kills:
        directory = Path(folder) / "run"

        def watch(report: UpdateReport, seconds_left: float) -> None:
            seen.append(report.update)
            saved = directory / "trainer.pt"
            last = torch.load(saved, weights_only=True)["updates"] if saved.exists() else 0
            before = report.update - 1
            if last != before - before % config.checkpoint_every:
                lost.append(f"at update {report.update} the checkpoint was of update {last}")
            kills.updated.set()
            if every is not None and 2 * report.update >= config.updates:
                kills.one.wait(10 * every)

        trainer = train_with_workers([problem], config, directory, scheme=scheme, watch=watch)
        if seen != [*range(1, config.updates + 1)]:
            lost.append(f"of {config.updates} updates there were {len(seen)}")
        if torch.load(directory / "trainer.pt", weights_only=True)["updates"] != config.updates:
            lost.append("the last checkpoint")
    return {
        "best": trainer.best[0],
        "kills": kills.count,
        "seconds": time.monotonic() - began,
        "lost": lost,
    }


def _updates(problem: PlacementProblem, kind: Callable[..., LearningConfig], seconds: float) -> int:
    """How many updates this process alone makes in so many seconds; at least 20."""
    trainer = Trainer([problem], kind(updates=1000))
    trainer.step()
    began = time.monotonic()
    for _ in range(3):
        trainer.step()
    return max(round(3 * seconds / (time.monotonic() - began)), 20)


class _Kills:
    """How many workers were killed; whether `one` was, and whether an update was made since."""

    def __init__(self) -> None:
        self.count = 0
        self.one = threading.Event()
        self.updated = threading.Event()


@contextmanager
def _killer(every: float | None) -> Iterator[_Kills]:
    """Kills one of this process's workers again and again, but lets each make an update first."""
    kills = _Kills()
    over = threading.Event()
    draw = random.Random(0)

    def kill() -> None:
        while not over.wait(every):
            if kills.updated.is_set() and (workers := ray_workers()):
                kills.updated.clear()
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(workers), signal.SIGKILL)
                    kills.count += 1
                    kills.one.set()

    thread = threading.Thread(target=kill)
    if every is not None:
        thread.start()
    try:
        yield kills
    finally:
        over.set()
        if every is not None:
            thread.join()


def markdown(rows: Sequence[dict[str, Any]], every: float) -> str:
    """The rows as a table."""
    header = ("", "updates", "best, left alone", "best, killed", "ratio", "kills", "lost")
    cells = [
        (
            row["scheme"],
            str(row["updates"]),
            format_seconds(row["alone"]["best"]),
            format_seconds(row["killed"]["best"]),
            f"{row['killed']['best'] / row['alone']['best']:.3f}",
            str(row["killed"]["kills"]),
            "; ".join([*row["alone"]["lost"], *row["killed"]["lost"]]) or "nothing",
        )
        for row in rows
    ]
    return f"A worker was killed every {every:g} seconds.\n\n{table(header, cells)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all, prints the table, and writes it unless that was the quick form."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ray_faults")
    parser.add_argument("--seconds", type=float, default=120.0, help="about how long a run takes")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills")
    parser.add_argument("--no-results", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    rows = faults(arguments.seconds, arguments.every)
    text = markdown(rows, arguments.every)
    print(text, end="")
    if not arguments.no_results:
        document = {"every": arguments.every, "rows": rows}
        (RESULTS / "ray_faults.json").write_text(json.dumps(document, indent=1) + "\n")
        (RESULTS / "ray_faults.md").write_text(text)
    synchronous = rows[0]
    differs = synchronous["alone"]["best"] != synchronous["killed"]["best"]
    return int(differs or any(row[run]["lost"] for row in rows for run in ("alone", "killed")))


if __name__ == "__main__":
    sys.exit(main())
