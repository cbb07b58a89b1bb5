"""The directory that a training run fills: whole after any end, and good to go on from."""

import contextlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from placeto.models.network import Network
from placeto.models.stored import save_policy, write_document
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, read_json, write_bytes
from placeto.training.events import Log, event_log
from placeto.training.identity import Identity, check_same
from placeto.training.trainer import UpdateReport

CONFIG, METRICS, STATE, CARD = "config.json", "metrics.jsonl", "trainer.pt", "policy.json"
RUN_FILES = (CONFIG, METRICS, "policy.safetensors", CARD, STATE)


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
            check_same(path, read_json(path / CONFIG), run)
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
    def open(self, updates: int) -> Iterator[tuple[Callable[[UpdateReport, str], None], Log]]:
        """Yields what an update is written down with, under a tag, and what other scalars are.

        Args:
            updates: how many are done; what there is of later ones is void.
        """
        for name in RUN_FILES:  # what a kill in the middle of a write left
            for path in self.path.glob(f".{name}.*"):
                path.unlink(missing_ok=True)
        write_document(self.path / CONFIG, self._run)
        self.cut(updates)
        with (self.path / METRICS).open("a") as metrics, event_log(self.path, updates + 1) as log:

            def write(report: UpdateReport, tag: str) -> None:
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
        """Writes a checkpoint.

        Args:
            state: all that the run needs to go on.
            policy: what the run has to show.
            card: what is said of the policy beside what names the run.
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
