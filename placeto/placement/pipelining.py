"""Pipeline plans for `torch.distributed.pipelining`."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.placement.pipeline_plan import PipelinePlan
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from torch import nn
    from torch.distributed.pipelining import (
        Pipe,
        Schedule1F1B,
        ScheduleGPipe,
        ScheduleInterleaved1F1B,
        SplitPoint,
    )


@dataclass(frozen=True, eq=False)
class PipelineStages:
    """A module and where a plan splits it.

    Attributes:
        module: the whole one.
        plan: the plan.
    """

    module: nn.Module
    plan: PipelinePlan

    @property
    def split_spec(self) -> dict[str, SplitPoint]:
        """What `torch.distributed.pipelining.pipeline` takes as its `split_spec`."""
        from torch.distributed.pipelining import SplitPoint

        return dict.fromkeys(self.plan.split_points, SplitPoint.BEGINNING)

    @property
    def schedule(self) -> type[ScheduleGPipe | Schedule1F1B | ScheduleInterleaved1F1B]:
        """The class of PyTorch's schedule; it takes a stage, `plan.microbatches`, and a loss.

        An interleaved one takes the list of a process's stages, see `numbers`.
        """
        from torch.distributed import pipelining

        classes: dict[str, Any] = {
            "gpipe": pipelining.ScheduleGPipe,
            "1f1b": pipelining.Schedule1F1B,
            "interleaved": pipelining.ScheduleInterleaved1F1B,
        }
        found: type[ScheduleGPipe | Schedule1F1B | ScheduleInterleaved1F1B]
        found = classes[self.plan.schedule]
        return found

    def numbers(self, rank: int) -> range:
        """Of the stages that a process runs, the numbers from 0; one unless it is interleaved."""
        return range(rank, len(self.plan.stages), self.plan.processes)

    def pipe(self, *args: Any, **kwargs: Any) -> Pipe:
        """The module, traced and split: its `build_stage` makes what a schedule runs.

        Args:
            args: what the module is called with for one microbatch.
            kwargs: likewise.

        Raises:
            PlacetoError: PyTorch makes another number of stages: a module of a split point is
                called more than once, or the module is another than the plan's.
        """
        from torch.distributed.pipelining import pipeline

        # PyTorch takes parameters out of the module that it splits: of a copy, with the same ones.
        tensors = [*self.module.parameters(), *self.module.buffers()]
        copied = copy.deepcopy(self.module, {id(each): each for each in tensors})
        pipe = pipeline(copied, args, kwargs, self.split_spec)
        wanted = len(self.plan.stages)
        if pipe.num_stages != wanted:
            raise PlacetoError(
                f"the plan of {self.plan.graph!r} has {wanted} stages, split at "
                f"{', '.join(self.plan.split_points)}, and PyTorch makes {pipe.num_stages}: is a "
                "module of these called more than once?"
            )
        return pipe

    def step(self, schedule: Any, *args: Any, **kwargs: Any) -> None:
        """Runs a step of a schedule, which does not collect what the last stage yields.

        That is as large as the module's output for the whole batch, and would be kept and copied.
        Versions of PyTorch that cannot leave it out do so all the same.

        Args:
            schedule: made of `schedule`, or one that PyTorch makes of another stage.
            args: what its `step` takes.
            kwargs: likewise.
        """
        if "return_outputs" in inspect.signature(schedule.step).parameters:
            kwargs["return_outputs"] = False
        schedule.step(*args, **kwargs)

    def stage_module(self, number: int, *args: Any, **kwargs: Any) -> nn.Module:
        """The module of one stage, for a `PipelineStage` made by hand.

        Args:
            number: of the stage, from 0.
            args: what the whole module is called with for one microbatch.
            kwargs: likewise.

        Raises:
            PlacetoError: there is no such stage; see `pipe`.
        """
        if not 0 <= number < len(self.plan.stages):
            raise PlacetoError(
                f"there is no stage {number}; stages go from 0 to {len(self.plan.stages) - 1}"
            )
        return self.pipe(*args, **kwargs).get_stage_module(number)


def pipeline_stages(module: nn.Module, plan: PipelinePlan) -> PipelineStages:
    """Splits a module as a plan says.

    Args:
        module: the one that the plan's graph was extracted from, or one of the same structure.
        plan: what `placeto place --pipeline` wrote, read by `placeto.load_pipeline`.

    Raises:
        PlacetoError: the module has none of the plan's split points.
    """
    known = {path for path, _ in module.named_modules(remove_duplicate=False)}
    for path in plan.split_points:
        if path not in known:
            raise PlacetoError(
                f"the plan of {plan.graph!r} splits the module at {path!r}, which it does not have"
            )
    return PipelineStages(module, plan)
