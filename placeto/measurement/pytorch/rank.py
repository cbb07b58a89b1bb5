"""One of two processes that send tensors to each other by `torch.distributed`, see `Exchange`."""

import sys
import time
from typing import Any

import torch
import torch.distributed as dist

from placeto.measurement.parent import Parent
from placeto.measurement.pytorch.group import join_group

WARM_UP = 3


def main() -> None:
    """Sends and receives as the parent says, until it ends."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    rank, device = settings["rank"], torch.device(settings["device"])
    torch.set_num_threads(1)
    try:
        join_group(device, rank, 2, settings["meeting"])
        parent.send({})
        while True:
            asked = parent.receive()
            parent.send(exchange(rank, device, asked["bytes"], asked["turns"]))
    except (RuntimeError, ValueError) as error:
        parent.send({"error": str(error).strip().splitlines()[0]})


def exchange(rank: int, device: torch.device, num_bytes: int, turns: int) -> dict[str, Any]:
    """Sends a tensor there and back in turn, then many from the first process to the second.

    Returns:
        `seconds` of each turn, one way, and `processor_seconds` that one way took this process.
    """
    tensor = torch.ones(max(num_bytes // 4, 1), device=device)
    seconds = []
    for turn in range(WARM_UP + turns):
        began = time.perf_counter()
        _one_way(rank, 0, tensor)
        _one_way(rank, 1, tensor)
        if turn >= WARM_UP:
            seconds.append((time.perf_counter() - began) / 2)
    began = time.process_time()
    for _ in range(turns):
        _one_way(rank, 0, tensor)
    # What threads of the library do for the last one is over by then.
    _one_way(rank, 1, tensor[:1])
    processor = (time.process_time() - began) / turns
    return {"seconds": seconds, "processor_seconds": processor}


def _one_way(rank: int, source: int, tensor: torch.Tensor) -> None:
    how = dist.isend if rank == source else dist.irecv
    for work in dist.batch_isend_irecv([dist.P2POp(how, tensor, 1 - rank)]):
        work.wait()
    if tensor.device.type != "cpu":
        torch.accelerator.synchronize()


if __name__ == "__main__":
    main()
