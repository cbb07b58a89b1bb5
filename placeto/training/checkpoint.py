"""What a training run needs to go on, always whole."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, write_bytes

RUN_FILES = ("config.json", "metrics.jsonl", "policy.safetensors", "policy.json", "trainer.pt")


def save_state(directory: Path, state: dict[str, Any]) -> None:
    """Writes `trainer.pt`, all that a run needs to go on."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_bytes(directory / "trainer.pt", buffer.getvalue())


def load_state(directory: Path) -> dict[str, Any] | None:
    """Reads `trainer.pt`; None if there is none.

    Raises:
        PlacetoError: the file is broken.
    """
    path = directory / "trainer.pt"
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


def remove_leftovers(directory: Path) -> None:
    """Removes what a kill in the middle of a write left: files of temporary names."""
    for name in RUN_FILES:
        for path in directory.glob(f".{name}.*"):
            path.unlink(missing_ok=True)
