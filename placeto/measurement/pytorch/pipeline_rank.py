"""One process of a pipeline that is tried out, or one that has the whole module."""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor

from placeto.extraction.pytorch.capture import loss_targets, total_loss
from placeto.extraction.pytorch.inputs import Call, divided, real_call
from placeto.extraction.pytorch.source import STEP_OPTIONS
from placeto.extraction.source import parse_source
from placeto.extraction.user_code import running, user_function
from placeto.measurement.parent import Parent
from placeto.measurement.pytorch.group import join_group
from placeto.measurement.pytorch.op_times import OPTIMIZERS
from placeto.placement.pipeline_plan import PipelinePlan
from placeto.placement.pipelining import pipeline_stages
from placeto.support.errors import PlacetoError

Step = Callable[[], None]


def main() -> None:
    """Makes ready, and runs a step each time that the parent says so, until it ends."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    source = parse_source(settings["source"])
    try:
        with running(source):
            device = torch.device(settings["device"])
            torch.zeros(1, device=device)
            parent.send({})
            parent.receive()
            steps = _Steps(settings, device)
            parent.send({})
    except PlacetoError as error:
        parent.send({"error": str(error)})
        return
    while True:
        asked = parent.receive()
        try:
            with running(source):
                parent.send({"seconds": steps.timed(asked["microbatches"])})
        except PlacetoError as error:  # with more microbatches there may be enough memory
            parent.send({"error": str(error)})


class _Steps:
    """Steps of a source's module: those of a stage of a plan, or whole ones."""

    def __init__(self, settings: Mapping[str, Any], device: torch.device) -> None:
        source = parse_source(settings["source"])
        make, options, _ = user_function(source, STEP_OPTIONS)
        self.where, self.device, self.choice = source.text, device, options["loss"]
        self.training = not options["inference"]
        torch.manual_seed(0)
        call = real_call(make, options["inputs"], 1, self.where)
        call.module.train(self.training)
        self.targets: dict[int, list[Tensor | None]] = {}
        self.kept: dict[int, Step] = {}
        optimizer = OPTIMIZERS[options["optimizer"]]
        self.call, self.plan = call, None
        if settings["plan"] is None:
            call.module.to(device)
            parameters: list[Tensor] = list(call.module.parameters())
        else:
            self.plan = msgspec.convert(settings["plan"], PipelinePlan)
            rank, processes = settings["rank"], self.plan.processes
            join_group(device, rank, processes, settings["meeting"])
            parameters = self._split(self.plan, rank)
        trained = [each for each in parameters if each.requires_grad]
        self.optimizer = optimizer(trained) if trained and self.training else None
        self.parameters = trained

    def timed(self, microbatches: int | None) -> float:
        """Seconds of a step, from when all processes begin to when all have ended.

        Args:
            microbatches: of the whole module; None of a plan's stage.
        """
        if microbatches is not None and microbatches not in self.kept:
            self.kept[microbatches] = self._alone(microbatches)
        run = self.kept[microbatches or 0]
        for each in self.parameters:
            each.grad = None
        self._meet()
        began = time.perf_counter()
        with contextlib.nullcontext() if self.training else torch.no_grad():
            run()
        if self.optimizer is not None:
            self.optimizer.step()
        self._meet()
        return time.perf_counter() - began

    def _meet(self) -> None:
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)
        if self.plan is not None:
            dist.barrier()

    def _alone(self, count: int) -> Step:
        """A step of so many microbatches of the whole module."""
        part = self._moved(divided(self.call, count, contextlib.nullcontext(), self.where))

        def run() -> None:
            for _ in range(count):
                outputs = part.module(*part.args, **part.kwargs)
                if self.training:
                    loss = self._loss(outputs, count) / count
                    loss.backward()  # type: ignore[no-untyped-call]

        return run

    def _split(self, plan: PipelinePlan, rank: int) -> list[Tensor]:
        """Makes the stages of one process of a plan; their parameters."""
        count = plan.microbatches
        part = divided(self.call, count, contextlib.nullcontext(), self.where)
        if part.undivided:
            raise PlacetoError(
                f"{self.where}: has inputs that all microbatches have in common, which "
                "torch.distributed.pipelining would divide"
            )
        split = pipeline_stages(self.call.module, plan)
        pipe = split.pipe(*part.args, **part.kwargs)
        stages = [pipe.build_stage(number, self.device) for number in split.numbers(rank)]
        loss = (lambda outputs, _: self._loss(outputs, count)) if self.training else None
        schedule = split.schedule(
            stages if plan.schedule == "interleaved" else stages[0],  # type: ignore[arg-type]
            count,
            loss_fn=loss,
        )
        given = self._moved(self.call) if rank == 0 else None
        args, kwargs = ((), {}) if given is None else (given.args, given.kwargs)
        if rank == plan.processes - 1 and self.training:
            kwargs = {**kwargs, "target": torch.zeros(count, device=self.device)}
        self.kept[0] = lambda: split.step(schedule, *args, **kwargs)
        return [each for stage in stages for each in stage.submod.parameters()]

    def _loss(self, outputs: Any, count: int) -> Tensor:
        """The loss of one of so many microbatches, as that of the graph."""
        if count not in self.targets:
            self.targets[count] = loss_targets(outputs, self.choice, self.where)
        return total_loss(outputs, self.targets[count])

    def _moved(self, call: Call) -> Call:
        """A call whose inputs are on the device."""
        args, kwargs = torch.utils._pytree.tree_map_only(
            Tensor, lambda tensor: tensor.to(self.device), (call.args, call.kwargs)
        )
        return Call(call.module, args, kwargs, call.microbatches, call.undivided)


if __name__ == "__main__":
    main()
