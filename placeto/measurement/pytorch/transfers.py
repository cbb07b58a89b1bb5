"""What it takes to bring a tensor from one device of PyTorch's to another."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from placeto.measurement.calibration.ends import Ends, pieces
from placeto.measurement.calibration.exchange import Sample
from placeto.measurement.child import Child, ChildError
from placeto.support.errors import PlacetoError

SIZES = (4, 2**12, 2**16, 2**20, 2**22, 2**24, 2**26)
TURNS = 15
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Transfers:
    """What one way from a device to another takes.

    Attributes:
        samples: one a size.
        ends: what the devices at its ends have to do; None on accelerators, whose copies do not
            keep their kernels waiting.
    """

    samples: tuple[Sample, ...]
    ends: Ends | None


def measure_transfers(source: str, destination: str) -> Transfers:
    """Sends tensors of many sizes from one device to another.

    Between two processes on the CPU that is done by `gloo`, between two GPUs by `nccl`, both as
    pipelines do it; what processor time it takes is what it costs the CPU. Between a GPU and the
    CPU a tensor is copied, from memory that is not pinned.

    Args:
        source: as PyTorch calls it.
        destination: likewise.

    Raises:
        PlacetoError: a device is not there, or a process failed.
    """
    types = {torch.device(source).type, torch.device(destination).type}
    if "cpu" in types and len(types) > 1:
        return Transfers(tuple(_copied(source, destination, size) for size in SIZES), None)
    folder = tempfile.TemporaryDirectory()
    meeting = str(Path(folder.name) / "meeting")
    ranks = [
        Child(
            f"the process of {device}",
            "placeto.measurement.pytorch.rank",
            {"rank": rank, "device": device, "meeting": meeting},
            {"GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank, device in enumerate((source, destination))
    ]
    try:
        _answers(ranks)
        samples, processor = [], []
        for size in SIZES:
            for rank in ranks:
                rank.send({"bytes": size, "turns": TURNS})
            sent, received = _answers(ranks)
            seconds = np.array(sent["seconds"])
            noise = float(np.median(np.abs(seconds - np.median(seconds)))) / TURNS**0.5
            samples.append(Sample(1, size, float(np.median(seconds)), noise))
            processor.append([each["processor_seconds"] for each in (sent, received)])
    except ChildError as error:
        raise PlacetoError(f"from {source} to {destination}: {error}") from error
    finally:
        for rank in ranks:
            rank.close()
        folder.cleanup()
    if types != {"cpu"}:
        return Transfers(tuple(samples), None)
    send, receive = np.array(processor).T.tolist()
    return Transfers(tuple(samples), Ends(pieces(SIZES, send), pieces(SIZES, receive)))


def _answers(ranks: list[Child]) -> list[dict[str, Any]]:
    found = []
    for rank in ranks:
        found.append(rank.receive(_PATIENCE_SECONDS))
        if "error" in found[-1]:
            raise ChildError(f"{rank.name}: {found[-1]['error']}")
    return found


def _copied(source: str, destination: str, size: int) -> Sample:
    tensor = torch.ones(max(size // 4, 1), device=source)
    seconds = []
    for _ in range(TURNS + 1):
        began = time.perf_counter()
        tensor.to(destination)
        torch.accelerator.synchronize()
        seconds.append(time.perf_counter() - began)
    middle = float(np.median(seconds[1:]))
    noise = float(np.median(np.abs(np.array(seconds[1:]) - middle))) / TURNS**0.5
    return Sample(1, size, middle, noise)
