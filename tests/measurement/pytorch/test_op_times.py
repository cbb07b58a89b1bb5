"""Op times by running ops, and what they add up to."""

import numpy as np
import pytest
import torch

from placeto.extraction.pytorch.inputs import real_call
from placeto.extraction.pytorch.source import trace_module
from placeto.extraction.source import parse_source
from placeto.measurement.pytorch import transfers
from placeto.measurement.pytorch.interpret import TimedInterpreter
from placeto.measurement.pytorch.op_times import _Step, time_ops
from placeto.measurement.pytorch.transfers import measure_transfers
from placeto.support.errors import PlacetoError

MODELS = "tests.extraction.pytorch.models"


def traced(text):
    return trace_module(parse_source(f"{MODELS}:{text}"), lambda line: None)


def test_ops_add_up_to_pytorchs_own_step():
    step = traced("deep?batch=64&microbatches=4&loss=mse&optimizer=adam")
    threads = torch.get_num_threads()
    (found,) = time_ops([step], "cpu", passes=3)
    assert torch.get_num_threads() == threads
    ops = step.listed.ops
    assert found.measured.all()
    of = {op.name: seconds for op, seconds in zip(ops, found.seconds, strict=True)}
    called = [node is not None and node.op == "call_function" for node in step.listed.nodes]
    assert (found.seconds[called] > 0).all()
    # Forward and backward are as long in the sum as PyTorch's, and no slower than twice its ops.
    whole, each = np.median(found.passes, axis=0)
    total = found.seconds[called].sum()
    assert found.passes[:, 0].min() * (1 - 1e-9) <= total <= found.passes[:, 0].max() * (1 + 1e-9)
    assert 0.3 * each < whole < 3 * each
    # Updates and sums of gradients are in proportion to bytes; a weight has none of its own.
    updates = {name: seconds for name, seconds in of.items() if name.endswith("/adam")}
    ratio = updates["0.weight/adam"] / updates["2.weight/adam"]
    assert ratio == pytest.approx((256 * 512) / (512 * 1024))
    numbers = {op.name: number for number, op in enumerate(ops)}
    ratio = found.adding[numbers["0.weight"]] / found.adding[numbers["2.weight"]]
    assert ratio == pytest.approx((256 * 512) / (512 * 1024))
    assert found.adding[numbers["0/addmm"]] == of["0.weight"] == 0
    # The largest product has 8 times the work of the smallest, or more; other tests run beside it.
    assert of["8/addmm_4"] > 1.2 * of["12/addmm_6"]


@pytest.mark.parametrize("text", ["language?layers=1", "convolutions", "language?inference=true"])
def test_modules_of_all_kinds_run(text):
    step = traced(text)
    (found,) = time_ops([step], "cpu", passes=1)
    assert found.measured.all()
    assert found.step_seconds > 0
    assert (found.adding == 0).all()


def test_what_runs_is_the_step():
    step = traced("language?layers=1&loss=crossentropy")
    torch.manual_seed(0)
    run = _Step(step, real_call(step.make, "", 1, "here"), torch.device("cpu"))
    with torch.no_grad():
        results = run.interpreter.run(*run._values())
    outputs = run.module(*run.args, **run.kwargs)
    loss = torch.nn.functional.cross_entropy(outputs.flatten(0, -2), run.targets[0].flatten())
    loss.backward()
    found = [each for each in torch.utils._pytree.tree_leaves(results) if each is not None]
    assert any(each.shape == () and torch.isclose(each, loss.detach()) for each in found)
    for parameter in (each for each in run.parameters if each.grad is not None):
        assert any(
            each.shape == parameter.shape and torch.allclose(each, parameter.grad, atol=1e-6)
            for each in found
        )


def missing_where_a_relu_is(target):
    """What the CPU has no kernel for, in a step in which a relu is something else."""
    graph = traced("mlp").captured.graph
    next(each for each in graph.nodes if each.name == "relu").target = target
    interpreter = TimedInterpreter(graph, torch.device("cpu"))
    given = [each.meta["val"] for each in graph.nodes if each.op == "placeholder"]
    values = [torch.zeros(each.shape, dtype=each.dtype) for each in given]
    seconds = interpreter.timed(values)
    assert interpreter.timed(values).keys() == seconds.keys()
    assert not seconds.keys() & interpreter.missing
    return interpreter.missing


def test_what_a_device_has_no_kernel_for_is_left_out():
    # It is for quantized tensors.
    assert missing_where_a_relu_is(torch.ops.aten.int_repr.default) == {"relu"}
    assert missing_where_a_relu_is(torch.ops.aten.relu.default) == set()


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, NotImplementedError])
def test_what_fails_for_another_reason_is_not_taken_for_that(error):
    def fails(*_):
        raise error("for another reason")

    with pytest.raises(error, match="another reason"):
        missing_where_a_relu_is(fails)


def test_a_process_that_fails_is_heard_at_once():
    with pytest.raises(PlacetoError, match="from cuda:9 to cuda:9: the process of cuda:9"):
        measure_transfers("cuda:9", "cuda:9")


def test_two_processes_send_to_each_other(monkeypatch):
    monkeypatch.setattr(transfers, "SIZES", (4, 2**20, 2**24))
    monkeypatch.setattr(transfers, "TURNS", 5)
    found = measure_transfers("cpu", "cpu")
    small, middle, large = (sample.seconds for sample in found.samples)
    # On a busy machine 4 bytes may take as long as a megabyte.
    assert 0 < min(small, middle) <= max(small, middle) < large < 5
    # 16 MiB are faster than 100 MB/s, and slower than 100 GB/s.
    assert 2**24 / 100e9 < large < 2**24 / 100e6
    for costs in (found.ends.send, found.ends.receive):
        seconds = costs[-1].seconds + 2**24 * costs[-1].seconds_per_byte
        assert 0 < seconds < 2 * large
