"""The example of a PyTorch pipeline: planned, run by two processes, the same as the whole model."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from placeto import load_cluster, load_pipeline
from placeto.extraction import extract
from placeto.placers.pipeline import plan_pipeline

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NETS = {
    ("gpt.py", "1f1b"): "batch=8&microbatches=4",
    ("resnet.py", "interleaved"): "batch=4&microbatches=2",
}
SCRIPT = EXAMPLES / "torch_pipeline.py"


@pytest.mark.parametrize(("net", "schedule"), NETS)
def test_gradients_and_loss_are_those_of_the_whole_model(net, schedule, tmp_path):
    source = EXAMPLES / net
    graph = extract(f"{source}:make?{NETS[net, schedule]}&loss=crossentropy").graph
    plan, _ = plan_pipeline(graph, load_cluster("local-2"), schedule)
    assert plan.processes == 2
    plan.save(tmp_path / "plan.json")
    assert load_pipeline(tmp_path / "plan.json").split_points == plan.split_points
    run = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            str(SCRIPT), source.stem, str(tmp_path / "plan.json"), "--check", "--steps", "3",
            "--batch", str(graph.batch),
        ],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    # The lines of two processes may be one. Each parameter is in one stage: what one has is what
    # the other leaves.
    found = re.findall(r"as the whole model; others have (\d+)", run.stdout)
    left = [int(count) for count in found]
    assert len(left) == 2
    module, _ = runpy.run_path(str(source))["make"](batch=1)
    assert sum(left) == len(dict(module.named_parameters()))
    losses = [float(loss) for loss in re.findall(r"step \d+: loss (\d+\.\d+)", run.stdout)]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
