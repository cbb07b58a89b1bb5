"""How processes of one `torch.distributed` group find each other."""

import torch
import torch.distributed as dist


def join_group(device: torch.device, rank: int, processes: int, meeting: str) -> None:
    """Joins the default group: of `gloo` on the CPU, of `nccl` on GPUs.

    Without a device of its own each process of `nccl` has GPU 0, and a barrier may guess a wrong
    one, and hang: hence `torch.cuda.set_device` before the group is made, and `device_id`.

    Args:
        device: of this process.
        rank: of this process.
        processes: how many there are.
        meeting: path of a file that does not exist yet, the same for all of them.

    Raises:
        RuntimeError: there is no such device, or the others do not come.
    """
    bound = None
    if device.type != "cpu":
        torch.cuda.set_device(device)
        bound = torch.device("cuda", torch.cuda.current_device())  # it has to have a number
    dist.init_process_group(
        "gloo" if bound is None else "nccl",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=processes,
        device_id=bound,
    )
