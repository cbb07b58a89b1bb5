"""Plans of pipelines, run by PyTorch on the real devices for a few steps."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from placeto.measurement.child import Child, ChildError
from placeto.placement.pipeline_plan import PipelinePlan
from placeto.support.progress import Progress

WARM_UP = 2
_PATIENCE_SECONDS = 300.0
_LOOK_SECONDS = 0.02


@dataclass
class PipelineRun:
    """What was run, and what its steps took.

    Attributes:
        plan: the pipeline; None for one process that has the whole module.
        device: of that process; of a plan "".
        microbatches: of a step.
        samples: seconds of each step that counts, in turn with those of the others.
        reason: why it did not run, one line; None if it did.
    """

    plan: PipelinePlan | None
    device: str
    microbatches: int
    samples: list[float] = field(default_factory=list)
    reason: str | None = None

    @property
    def step_time(self) -> float | None:
        """The median of the samples, seconds; None if there are none, or it failed later."""
        return float(np.median(self.samples)) if self.samples and self.reason is None else None


def run_pipelines(
    source: str,
    plans: Sequence[PipelinePlan],
    alone: tuple[str, Sequence[int]] | None,
    steps: int,
    progress: Progress,
) -> tuple[list[PipelineRun], bool]:
    """Runs plans as `torch.distributed.pipelining` does, and one process that has the module.

    Each plan has processes of its own, a device each, connected by `gloo` on the CPU and by `nccl`
    on GPUs. On the CPU all take turns, a step of each, since a machine is not as fast at one time
    as at another; on GPUs one follows the other, and has their whole memory. As `torchrun` has it,
    a process computes with one thread unless `OMP_NUM_THREADS` says otherwise. Batch, loss and
    optimizer are those of the source.

    Args:
        source: of the module, such as `net.py:make?batch=16`.
        plans: of that module.
        alone: the device of the one process, and with how many microbatches it runs; None for none.
        steps: how many count, after `WARM_UP` others.
        progress: called with what is being done.

    Returns:
        The runs, one a plan and a number of microbatches alone; and whether Ctrl-C ended them.
    """
    runs = [[PipelineRun(plan, "", plan.microbatches)] for plan in plans]
    if alone is not None:
        runs.append([PipelineRun(None, alone[0], count) for count in alone[1]])
    on_gpus = any(stage.device != "cpu" for plan in plans for stage in plan.stages)
    turns = [[each] for each in runs] if on_gpus else [runs]
    interrupted = False
    try:
        for together in turns:
            with contextlib.ExitStack() as stack:
                teams = [stack.enter_context(_team(source, each)) for each in together]
                for number in range(WARM_UP + steps):
                    progress(f"step {number + 1} of {WARM_UP + steps}")
                    for team in teams:
                        team.take_turn(number >= WARM_UP)
    except KeyboardInterrupt:
        interrupted = True
    return [run for each in runs for run in each], interrupted


class _Team:
    """The processes of one plan, or the one that is alone."""

    def __init__(self, runs: Sequence[PipelineRun], members: Sequence[Child]) -> None:
        self.runs, self.members = runs, members

    def take_turn(self, counts: bool) -> None:
        """A step of each run; one that fails is not tried again."""
        for run in self.runs:
            if run.reason is None:
                try:
                    answers = self.ask({"microbatches": None if run.plan else run.microbatches})
                except ChildError as error:
                    self.give_up([run], error)
                else:
                    if counts:
                        run.samples.append(answers[0]["seconds"])

    def give_up(self, runs: Sequence[PipelineRun], error: ChildError) -> None:
        """Says why runs failed; of a plan the processes would wait for each other."""
        for run in runs:
            run.reason = str(error)
        if len(runs) == len(self.runs):
            for member in self.members:
                member.close()

    def ask(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What all answer; once one fails, the others may wait for it, and are not heard."""
        for member in self.members:
            member.send(message)
        return self.hear()

    def hear(self) -> list[dict[str, Any]]:
        """The next answer of each, by rank."""
        answers: dict[int, dict[str, Any]] = {}
        until = time.monotonic() + _PATIENCE_SECONDS
        while len(answers) < len(self.members):
            for rank, member in enumerate(self.members):
                if rank in answers or not member.poll(_LOOK_SECONDS):
                    continue
                answers[rank] = member.receive(0.0)
                if "error" in answers[rank]:
                    raise ChildError(answers[rank]["error"])
            if time.monotonic() > until:
                raise ChildError(f"no step was done within {_PATIENCE_SECONDS:g} s")
        return [answers[rank] for rank in range(len(self.members))]


@contextlib.contextmanager
def _team(source: str, runs: Sequence[PipelineRun]) -> Iterator[_Team]:
    """A context in which processes live; if they cannot begin, their runs have the reason."""
    plan = runs[0].plan
    devices = [runs[0].device]
    if plan is not None:
        devices = [stage.device for stage in plan.stages[: plan.processes]]
    environment = {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        members = []
        for rank, device in enumerate(devices):
            settings = {
                "source": source,
                "plan": None if plan is None else msgspec.to_builtins(plan),
                "device": device,
                "rank": rank,
                "meeting": str(Path(folder) / "meeting"),
            }
            name = f"the process of {device}"
            module = "placeto.measurement.pytorch.pipeline_rank"
            members.append(Child(name, module, settings, environment))
            stack.callback(members[-1].close)
        team = _Team(runs, members)
        try:
            team.hear()  # the devices are there
            team.ask({})  # the stages are made
        except ChildError as error:
            team.give_up(runs, error)
        yield team
