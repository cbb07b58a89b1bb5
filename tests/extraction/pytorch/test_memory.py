"""Simulated memory against what PyTorch's own tracker counts, tensor by tensor, on the CPU."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributed._tools.mem_tracker import MemTracker

from placeto.cluster import Cluster, Device
from placeto.extraction.pytorch.capture import loss_targets, total_loss
from placeto.extraction.pytorch.inputs import real_call
from placeto.extraction.pytorch.source import graph_of, trace_module
from placeto.extraction.source import parse_source
from placeto.measurement.pytorch.op_times import OPTIMIZERS
from placeto.problem import PlacementProblem
from placeto.simulation import simulate

HERE = "tests.extraction.pytorch.test_memory"


def transformer(batch: int = 8) -> tuple[nn.Module, Tensor]:
    """Layers as they come with PyTorch, dropping nothing, and a large vocabulary."""
    layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
    body = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(1000, 64), body, nn.Linear(64, 1000))
    return model, torch.zeros(batch, 32, dtype=torch.int64)


def convolutions(batch: int = 8) -> tuple[nn.Module, Tensor]:
    """Convolutions, batch norm, and a layer whose weights are most of all."""
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(64 * 16, 512), nn.ReLU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers), torch.randn(batch, 3, 32, 32)


def perceptron(batch: int = 512) -> tuple[nn.Module, Tensor]:
    """Few activations, and many weights, whose gradients are all there in the end."""
    layers: list[nn.Module] = []
    for width in (128, 256, 512):
        layers += [nn.Linear(width, 2 * width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10)), torch.randn(batch, 128)


def tracked(step: Any) -> int:
    """Bytes that PyTorch holds at most in the second of two steps."""
    count, options = step.call.microbatches, step.options
    call = real_call(step.make, options["inputs"], count, "here")
    module = call.module
    optimizer = OPTIMIZERS[options["optimizer"]](list(module.parameters()))
    targets = loss_targets(module(*call.args, **call.kwargs), options["loss"], "here")
    tracker = MemTracker()

    def train() -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(count):
            loss = total_loss(module(*call.args, **call.kwargs), targets) / count
            loss.backward()  # type: ignore[no-untyped-call]
            tracker.reset_mod_stats()
        optimizer.step()

    train()
    given = [*call.args, *targets]
    tracker.track_external(module, optimizer, *(each for each in given if each is not None))
    with tracker:
        train()
    (peak,) = tracker.get_tracker_snapshot("peak").values()
    return int(peak["Total"])


@pytest.mark.parametrize(("microbatches", "optimizer"), [(1, "adam"), (4, "momentum")])
@pytest.mark.parametrize("model", ["transformer", "convolutions", "perceptron"])
def test_as_much_as_pytorch_holds(model: str, microbatches: int, optimizer: str) -> None:
    text = f"{HERE}:{model}?microbatches={microbatches}&optimizer={optimizer}&loss=crossentropy"
    step = trace_module(parse_source(text), lambda line: None)
    graph, _ = graph_of(step)
    cluster = Cluster("one", (Device("cpu", "cpu", 2**40),))
    order = "1f1b" if microbatches > 1 else "fifo"
    problem = PlacementProblem(graph, cluster, "none", order=order)
    simulated = simulate(problem, np.zeros(problem.num_groups, dtype=np.int64)).peak_memory[0]
    assert simulated == pytest.approx(tracked(step), rel=0.05)
