import importlib
import os
import subprocess
import sys

import pytest

from placeto import PlacetoError


@pytest.mark.parametrize(
    ("name", "needed", "extra"),
    [
        ("sb3", "stable_baselines3.common.torch_layers", "sb3"),
        ("rllib", "ray.rllib.core.columns", "ray"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(name, needed, extra, monkeypatch):
    # Of a package that is not there, nothing is; what is there is not loaded for this test.
    monkeypatch.setitem(sys.modules, needed.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"placeto.integrations.{name}", raising=False)
    with pytest.raises(PlacetoError, match=rf"pip install 'placeto\[{extra}\]'"):
        importlib.import_module(f"placeto.integrations.{name}")


NET = """
import torch
from torch import nn

def make(batch: int = 4096):
    return nn.Sequential(*(nn.Linear(512, 512) for _ in range(4))), torch.zeros(batch, 512)
"""
WITH_PYTORCH_ALONE = """
import sys
sys.modules.update(dict.fromkeys(["tensorflow", "keras", "tf_keras", "tensorboard"]))
from placeto import load_pipeline, pipeline_stages
from placeto.cli import main
source = "net.py:make?microbatches=4&loss=mse"
assert main(["detect", "-o", "box.yaml", "--processes", "2"]) == 0
assert main(["extract", source, "-o", "net.json.gz"]) == 0
assert main(["place", "net.json.gz", "--cluster", "box.yaml", "--pipeline", "plan.json"]) == 0
from net import make
module, batch = make(16)
plan = load_pipeline("plan.json")
assert len(plan.stages) == 2, plan
pipe = pipeline_stages(module, plan).pipe(batch[:4])
names = [name for n in range(pipe.num_stages) for name in pipe.get_stage_module(n).state_dict()]
assert sorted(names) == sorted(module.state_dict()), names
"""


def test_who_has_pytorch_alone_plans_and_splits(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", WITH_PYTORCH_ALONE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
