"""The directory that a training run fills: whole after any end, and good to go on from."""

import contextlib
import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from placeto import cluster as clusters
from placeto import graph as graphs
from placeto.models.network import Network
from placeto.models.settings import LearningConfig
from placeto.models.stored import save_policy, write_document
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, read_json, write_bytes
from placeto.training.trainer import UpdateReport

CONFIG, METRICS, STATE, CARD = "config.json", "metrics.jsonl", "trainer.pt", "policy.json"
RUN_FILES = (CONFIG, METRICS, "policy.safetensors", CARD, STATE)

Log = Callable[[int, Mapping[str, float]], None]
"""Scalars are logged with it: a step's number, and values by tag."""

Identity = dict[str, Any]
"""A document of JSON: `problems`, `training`, and, where there are any, `validation`, `scheme`."""


def identity_of(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    validation: Sequence[PlacementProblem],
) -> Identity:
    """What names a run in one process.

    Raises:
        PlacetoError: two graphs on one cluster have the same name.
    """
    chosen_by = {"validation": _described(validation)} if validation else {}
    return {"problems": _described(problems), **chosen_by, "training": config.to_document()}


def _described(problems: Sequence[PlacementProblem]) -> list[dict[str, Any]]:
    names = [(problem.graph.name, problem.cluster.name) for problem in problems]
    for graph, cluster in names:
        if names.count((graph, cluster)) > 1:
            raise PlacetoError(
                f"two graphs are called {graph!r} on cluster {cluster!r}; names must be unique"
            )
    return [
        {
            "graph": problem.graph.name,
            "cluster": problem.cluster.name,
            "ops": problem.graph.num_ops,
            "groups": problem.num_groups,
            "devices": problem.num_devices,
            "digest": _digest(problem),
        }
        for problem in problems
    ]


def _digest(problem: PlacementProblem) -> str:
    """A number that is another for another problem, were its names and sizes the same."""
    documents = [graphs.to_document(problem.graph), clusters.to_document(problem.cluster)]
    parts = [json.dumps(documents).encode(), problem.op_group.tobytes(), problem.allowed.tobytes()]
    if problem.ranks is not None:
        parts += [problem.ranks.tobytes(), problem.held_back.tobytes()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


class RunDirectory:
    """A run's directory.

    It holds `config.json`, `metrics.jsonl` (a line an update), TensorBoard events (if tensorboard
    is installed), `policy.safetensors` with `policy.json`, and `trainer.pt`. What is not appended
    to is replaced whole, so that a kill at any moment leaves the last checkpoint.

    Args:
        path: made if it is not there.
        run: what names the run.

    Raises:
        PlacetoError: it holds another run, or what is no run.
        OSError: it cannot be made.
    """

    def __init__(self, path: Path, run: Identity) -> None:
        self.path = path
        self._run = run
        path.mkdir(parents=True, exist_ok=True)
        if (path / CONFIG).exists():
            self._check_card(run["training"]["checkpoint_every"])
            self._check_same(read_json(path / CONFIG))
            return
        for name in (STATE, CARD, METRICS):
            if (path / name).exists():
                raise PlacetoError(
                    f"{path}: holds {name} but no config.json, so no run to go on with; "
                    "give another directory"
                )

    def state(self) -> dict[str, Any] | None:
        """What `trainer.pt` holds, all that the run needs to go on; None if there is none.

        Raises:
            PlacetoError: the file is broken.
        """
        path = self.path / STATE
        if not path.exists():
            return None
        file = io.BytesIO(read_bytes(path))
        try:
            with zipfile.ZipFile(file) as archive:  # torch's format; torch does not check its sums
                if (member := archive.testzip()) is not None:
                    raise zipfile.BadZipFile(f"the checksum of {member} is wrong")
            file.seek(0)
            state = torch.load(file, weights_only=True)
        except (zipfile.BadZipFile, pickle.UnpicklingError, RuntimeError, ValueError) as error:
            line = " ".join(str(error).split())
            raise PlacetoError(
                f"{path}: broken resume state ({line}); give another directory to start anew"
            ) from error
        if not isinstance(state, dict):
            raise PlacetoError(f"{path}: not a resume state; give another directory to start anew")
        return state

    @contextlib.contextmanager
    def open(self, updates: int) -> Iterator[tuple[Callable[[UpdateReport], None], Log]]:
        """Yields what an update is written down with, and what other scalars are.

        What the directory has of later updates than the first `updates` is void.
        """
        for name in RUN_FILES:  # what a kill in the middle of a write left
            for path in self.path.glob(f".{name}.*"):
                path.unlink(missing_ok=True)
        write_document(self.path / CONFIG, self._run)
        self.cut(updates)
        several = len({problem["cluster"] for problem in self._run["problems"]}) > 1
        with (self.path / METRICS).open("a") as metrics, _events(self.path, updates + 1) as log:

            def write(report: UpdateReport) -> None:
                tag = f"{report.graph}/{report.cluster}" if several else report.graph
                values = asdict(report)
                metrics.write(json.dumps(values) + "\n")
                metrics.flush()
                scalars = {key: value for key, value in values.items() if isinstance(value, float)}
                log(report.update, {f"{tag}/{key}": scalars[key] for key in scalars})

            yield write, log

    def cut(self, updates: int) -> None:
        """Leaves the metrics of the first `updates` updates: later ones are made again."""
        metrics = self.path / METRICS
        lines = metrics.read_bytes().splitlines(keepends=True) if metrics.exists() else []
        if len(lines) > updates:
            write_bytes(metrics, b"".join(lines[:updates]))

    def save(self, state: dict[str, Any], policy: Network, card: dict[str, Any]) -> None:
        """Writes a checkpoint: all that the run needs to go on, and what it has to show.

        The card is what is said of the policy beside what names the run.
        """
        save_policy(self.path, policy, self._run | card)
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_bytes(self.path / STATE, buffer.getvalue())

    def _check_card(self, checkpoint_every: int) -> None:
        card = self.path / CARD
        if not card.exists() or (self.path / STATE).exists():
            return
        # A kill between the two files of the first checkpoint leaves this, too.
        updates = read_json(card).get("updates")
        if not isinstance(updates, int) or updates > checkpoint_every:
            raise PlacetoError(
                f"{self.path}: holds a policy but no trainer.pt to go on from, and would lose it; "
                "give another directory"
            )

    def _check_same(self, before: Mapping[str, Any]) -> None:
        """Makes sure that a run goes on as itself; only its number of updates may be another."""
        now = self._run
        old, new = before.get("training"), now["training"]
        for key, held in (
            ("problems", "on other graphs, another grouping, order or cluster"),
            ("validation", "with other validation graphs"),
        ):
            if before.get(key) != now.get(key):
                raise self._another(held)
        if before.get("scheme") != now.get("scheme"):
            raise self._another(f"with {_said(before)}, not {_said(now)}")
        if not isinstance(old, dict):
            raise PlacetoError(
                f"{self.path / CONFIG}: training is {old!r}, expected the settings of a run"
            )
        for key in new:
            if key != "updates" and old.get(key) != new[key]:
                raise self._another(f"with {key} = {old.get(key)!r}, not {new[key]!r}")

    def _another(self, held: str) -> PlacetoError:
        return PlacetoError(f"{self.path}: holds a run {held}; give the same, or another directory")


def _said(run: Mapping[str, Any]) -> str:
    scheme = run.get("scheme") or {"mode": "synchronous"}
    return ", ".join(f"{key} {value}" for key, value in scheme.items())


@contextlib.contextmanager
def _events(directory: Path, first: int) -> Iterator[Log]:
    """Yields what TensorBoard's events are logged with, where tensorboardX is installed.

    What files of earlier parts of the run say of the first step to come and of later ones is void.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        yield lambda step, scalars: None
        return
    writer = SummaryWriter(str(directory), purge_step=first, filename_suffix=f".{first}")

    def write(step: int, scalars: Mapping[str, float]) -> None:
        for tag, value in scalars.items():
            writer.add_scalar(tag, value, step)
        writer.flush()

    # Ctrl-C, which the main thread meets, in the middle of putting something into tensorboardX's
    # queue can leave the queue so that its end is waited for without end.
    with ThreadPoolExecutor(1) as thread:
        try:
            yield lambda step, scalars: thread.submit(write, step, scalars).result()
        finally:
            thread.submit(writer.close).result()
