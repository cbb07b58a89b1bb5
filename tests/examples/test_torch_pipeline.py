"""The example of a PyTorch pipeline: planned, run by two processes, the same as the whole model."""

import os
import subprocess
import sys
from pathlib import Path

from placeto import load_cluster, load_pipeline
from placeto.extraction import extract
from placeto.placers.pipeline import plan_pipeline

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SOURCE, SCRIPT = EXAMPLES / "gpt.py", EXAMPLES / "torch_pipeline.py"
NAMES = ("gpt.py", "torch_pipeline.py")


def test_gradients_and_loss_are_those_of_the_whole_model(tmp_path):
    assert (SOURCE.name, SCRIPT.name) == NAMES
    graph = extract(f"{SOURCE}:make?batch=16&microbatches=8&loss=crossentropy").graph
    plan, _ = plan_pipeline(graph, load_cluster("local-2"))
    assert len(plan.stages) == 2
    plan.save(tmp_path / "plan.json")
    assert load_pipeline(tmp_path / "plan.json").split_points == plan.split_points
    run = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            str(SCRIPT), str(tmp_path / "plan.json"), "--check", "--steps", "3",
        ],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    others = [line for line in run.stdout.splitlines() if "as the whole model" in line]
    assert len(others) == 2
    # Each parameter is in one stage: what one has is what the other leaves.
    left = [int(line.split()[-1]) for line in others]
    assert sum(left) == len(dict(_module().named_parameters()))
    losses = [float(line.split()[3].rstrip(",")) for line in run.stdout.splitlines()
              if line.startswith("step")]  # fmt: skip
    assert len(losses) == 3
    assert losses[-1] < losses[0]


def _module():
    import runpy

    return runpy.run_path(str(SOURCE))["make"](batch=1)[0]
