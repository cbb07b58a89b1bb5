"""Plans in the hands of `torch.distributed.pipelining`."""

import pytest
import torch
from torch.distributed.pipelining import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
)

from placeto import PipelinePlan, PlacetoError, pipeline_stages
from placeto.placement.pipeline_plan import Stage
from tests.extraction.pytorch import models

# PyTorch's own, when it splits a module.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


def plan(*points, schedule="1f1b", each=1):
    return PipelinePlan(
        graph="net", cluster="two", schedule=schedule, microbatches=2, split_points=points,
        stages=tuple(Stage("cpu", ()) for _ in range(len(points) + 1)), step_time=1.0,
        single_device_step_time=2.0, peak_memory=(1,) * (len(points) + 1), feasible=True,
        bubble=0.0, examples_per_second=None, stages_per_process=each,
    )  # fmt: skip


def test_what_pytorch_takes():
    module, _ = models.language()
    stages = pipeline_stages(module, plan("blocks.1", "head"))
    assert stages.split_spec == {
        "blocks.1": SplitPoint.BEGINNING,
        "head": SplitPoint.BEGINNING,
    }
    assert stages.schedule is Schedule1F1B
    assert pipeline_stages(module, plan(schedule="gpipe")).schedule is ScheduleGPipe
    assert [list(stages.numbers(rank)) for rank in range(3)] == [[0], [1], [2]]
    points = ("blocks.0", "blocks.1", "head")
    several = pipeline_stages(module, plan(*points, schedule="interleaved", each=2))
    assert several.schedule is ScheduleInterleaved1F1B
    assert [list(several.numbers(rank)) for rank in range(2)] == [[0, 2], [1, 3]]


def test_the_modules_of_all_stages_are_the_whole_module():
    torch.manual_seed(0)
    module, image = models.mlp()
    expected = module(image)
    stages, found = pipeline_stages(module, plan("1", "2")), image
    inside = []
    for number in range(3):
        stage = stages.stage_module(number, image)
        inside += stage.parameters()
        found = stage(found)
    torch.testing.assert_close(found, expected)
    # The whole module keeps its parameters, and the stages have the same ones.
    assert set(map(id, inside)) == set(map(id, module.parameters()))
    torch.testing.assert_close(module(image), expected)
    with pytest.raises(PlacetoError, match="there is no stage 3; stages go from 0 to 2"):
        stages.stage_module(3, image)


def test_one_stage_is_the_whole_module():
    module, image = models.mlp()
    pipe = pipeline_stages(module, plan()).pipe(image)
    assert pipe.num_stages == 1


class Twice(torch.nn.Module):
    """Calls its second layer two times."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.second(self.second(self.first(x)))


def test_modules_that_are_not_the_plans():
    with pytest.raises(PlacetoError, match="splits the module at 'body', which it does not have"):
        pipeline_stages(Twice(), plan("body"))
    stages = pipeline_stages(Twice(), plan("second"))
    with pytest.raises(PlacetoError, match="has 2 stages, split at second, and PyTorch makes 3"):
        stages.pipe(torch.zeros(2, 3))


def test_outputs_are_left_out_where_pytorch_can():
    stages, seen = pipeline_stages(models.mlp()[0], plan("1")), []

    class Old:
        def step(self, *args, target=None):
            seen.append((args, target))

    class New:
        def step(self, *args, target=None, return_outputs=True):
            seen.append((args, target, return_outputs))

    for schedule in (Old(), New()):
        stages.step(schedule, 1, target=2)
    assert seen == [((1,), 2), ((1,), 2, False)]
