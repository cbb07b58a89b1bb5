"""One of two processes that run all splits of a model in turn, a step of each.

`python -m benchmarks.torch_pipelines.rank SETTINGS`, started by the study by `torchrun`.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.torch_pipelines.nets import NETS
from placeto import PipelinePlan, load_pipeline, pipeline_stages
from placeto.placement.pipeline_plan import Stage


def loss_of(scores: Tensor, wanted: Tensor) -> Tensor:
    """The mean cross-entropy."""
    return nn.functional.cross_entropy(scores.flatten(0, -2), wanted.flatten())


def main() -> None:
    """Reads settings, runs, and has the first process write what each step took."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    rank = int(os.environ["RANK"])
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model, inputs = NETS[settings["net"]]()
    model.train()
    with torch.no_grad():
        scores = model(inputs[:1])
    wanted = torch.zeros((len(inputs), *scores.shape[1:-1]), dtype=torch.int64)
    steps: dict[str, Callable[[], Any]] = {}
    for name, count in settings["alone"].items():
        steps[name] = alone(model, inputs, wanted, count) if rank == 0 else (lambda: None)
    for name, (point, plan) in settings["splits"].items():
        split = msgspec.structs.replace(
            load_pipeline(plan),
            split_points=(point,),
            stages=(Stage("cpu", ()), Stage("cpu", ())),
        )
        steps[name] = staged(model, inputs, wanted, rank, split)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(1 + settings["rounds"]):
        for name, step in steps.items():
            model.zero_grad(set_to_none=True)
            dist.barrier()
            began = time.perf_counter()
            step()
            dist.barrier()
            if number > 0:
                seconds[name].append(time.perf_counter() - began)
    if rank == 0:
        Path(settings["output"]).write_text(json.dumps(seconds))
    dist.destroy_process_group()


def alone(model: nn.Module, inputs: Tensor, wanted: Tensor, count: int) -> Callable[[], Any]:
    """A step of so many microbatches in this process."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    parts = list(zip(inputs.chunk(count), wanted.chunk(count), strict=True))

    def step() -> None:
        for given, target in parts:
            (loss_of(model(given), target) / count).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def staged(
    model: nn.Module, inputs: Tensor, wanted: Tensor, rank: int, plan: PipelinePlan
) -> Callable[[], Any]:
    """A step of a pipeline of two stages, of which this process has one."""
    split = pipeline_stages(model, plan)
    pipe = split.pipe(inputs.chunk(plan.microbatches)[0])
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = split.schedule(stage, plan.microbatches, loss_fn=loss_of)
    parameters = list(stage.submod.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9) if parameters else None
    given = partial(split.step, schedule)
    step = partial(given, inputs) if rank == 0 else partial(given, target=wanted)

    def whole() -> None:
        step()
        if optimizer is not None:
            optimizer.step()

    return whole


if __name__ == "__main__":
    main()
