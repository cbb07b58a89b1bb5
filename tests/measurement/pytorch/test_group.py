"""Processes of one group, and what each tells NCCL of its GPU; there is none here."""

import runpy
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from placeto import PipelinePlan
from placeto.measurement.pytorch.group import join_group
from placeto.placement.pipeline_plan import Stage

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


class Made(Exception):  # noqa: N818 (it is no error)
    """The group is made."""


@pytest.fixture
def calls(monkeypatch):
    """What is called, in order; the current GPU is the one that was set last."""
    seen = []

    def made(backend, **given):
        seen.append((backend, given.get("device_id")))
        raise Made

    monkeypatch.setattr(torch.cuda, "set_device", lambda device: seen.append(torch.device(device)))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: seen[-1].index)
    monkeypatch.setattr(dist, "init_process_group", made)
    return seen


def test_a_process_of_nccl_has_its_own_gpu_before_there_is_a_group(calls):
    device = torch.device("cuda:3")
    with pytest.raises(Made):
        join_group(device, 1, 2, "/nowhere")
    assert calls == [device, ("nccl", device)]


def test_one_of_gloo_has_none(calls):
    with pytest.raises(Made):
        join_group(torch.device("cpu"), 1, 2, "/nowhere")
    assert calls == [("gloo", None)]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_example_does_the_same(calls, monkeypatch, tmp_path, device):
    stages = (Stage("cuda:1", ()), Stage("cuda:0", ()))
    PipelinePlan(
        graph="net", cluster="two", schedule="1f1b", microbatches=2, split_points=("head",),
        stages=stages, step_time=1.0, single_device_step_time=2.0, peak_memory=(1, 1),
        feasible=True, bubble=0.0, examples_per_second=None,
    ).save(tmp_path / "plan.json")  # fmt: skip
    argv = ["torch_pipeline.py", "gpt", str(tmp_path / "plan.json"), "--device", device]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    main = runpy.run_path(str(EXAMPLES / "torch_pipeline.py"))["main"]
    with pytest.raises(Made):
        main()
    gpu = torch.device("cuda:0")  # the second stage's
    assert calls == ([gpu, ("nccl", gpu)] if device == "cuda" else [("gloo", None)])
