"""The example of a PyTorch pipeline: planned, run by two processes, the same as the whole model."""

import functools
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from placeto import load_cluster, load_pipeline
from placeto.extraction import extract
from placeto.placers.pipeline import plan_pipeline

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NETS = {"gpt.py": "batch=8&microbatches=4", "resnet.py": "batch=4&microbatches=2"}
SCRIPT = EXAMPLES / "torch_pipeline.py"


@functools.cache
def graph_of(net):
    return extract(f"{EXAMPLES / net}:make?{NETS[net]}&loss=crossentropy").graph


def within(name, modules):
    """Whether a parameter is of one of some modules, or of one inside of them."""
    return any(name.startswith(f"{path}.") for path in modules)


@pytest.mark.parametrize(
    ("net", "schedule"), [("gpt.py", "1f1b"), ("gpt.py", "gpipe"), ("resnet.py", "interleaved")]
)
def test_a_plan_runs_as_the_whole_model(net, schedule, tmp_path):
    source, graph = EXAMPLES / net, graph_of(net)
    plan, _ = plan_pipeline(graph, load_cluster("local-2"), schedule)
    assert plan.processes == 2
    plan.save(tmp_path / "plan.json")
    assert load_pipeline(tmp_path / "plan.json").split_points == plan.split_points
    run = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            str(SCRIPT), source.stem, str(tmp_path / "plan.json"), "--check", "--steps", "3",
            "--batch", str(graph.batch), "--save", str(tmp_path),
        ],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.count("as the whole model") == 2  # the lines of two processes may be one
    losses = [float(loss) for loss in re.findall(r"step \d+: loss (\d+\.\d+)", run.stdout)]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    # What each process has trained is what the plan's stages of it have.
    module, _ = runpy.run_path(str(source))["make"](batch=1)
    names = {name for name, _ in module.named_parameters()}
    planned = [[path for stage in plan.stages[n::2] for path in stage.modules] for n in range(2)]
    trained = [set(torch.load(tmp_path / f"weights-{number}.pt")) for number in range(2)]
    assert trained[0] | trained[1] == names
    assert not trained[0] & trained[1]
    for modules, own in zip(planned, trained, strict=True):
        assert any(within(name, modules) for name in own)
        for name in names:
            # The model's own parameters are of no module inside of it.
            if "." in name:
                assert within(name, modules) == (name in own)
