"""Steps of several microbatches: their ops by hand, their numbers against torch's own."""

from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, save_graph, simulate
from placeto.extraction import extract
from placeto.extraction.pytorch.capture import capture
from placeto.extraction.pytorch.inputs import divided, make_call
from placeto.graph import BACKWARD, FORWARD, UPDATE, ComputationGraph
from tests.extraction.pytorch import models
from tests.extraction.pytorch.replay import drawn_step, loss_of, replayed

MODELS = "tests.extraction.pytorch.models"
STATES = ["0.weight", "0.bias", "2.weight", "2.bias"]

Edges = set[tuple[str, str, int]]


@pytest.fixture(scope="module")
def whole() -> ComputationGraph:
    return extract(f"{MODELS}:mlp?batch=2&optimizer=adam").graph


@pytest.fixture(scope="module")
def parts() -> ComputationGraph:
    return extract(f"{MODELS}:mlp?batch=6&optimizer=adam&microbatches=3").graph


def edges(graph: ComputationGraph) -> Edges:
    """Producer, consumer, and bytes of what goes from one to the other."""
    producers, consumers = graph.op_edges
    sizes = graph.tensor_bytes[graph.edge_tensor]
    return {
        (graph.op_names[source], graph.op_names[target], size)
        for source, target, size in zip(
            producers.tolist(), consumers.tolist(), sizes.tolist(), strict=True
        )
    }


def test_each_microbatch_is_a_step_of_its_examples(
    whole: ComputationGraph, parts: ComputationGraph
) -> None:
    expected: Edges = set()
    updates = {f"{state}/adam" for state in STATES}
    backward = "gradients/loss/nll_loss_forward/nll_loss_backward"
    for number in range(3):

        def scoped(name: str, scope: str = f"microbatch{number}/") -> str:
            return name if name in STATES else scope + name

        for source, target, size in edges(whole):
            if target not in updates:
                expected.add((scoped(source), scoped(target), size))
            elif source in STATES:
                expected.add((source, target, size))
            elif number == 0 and size > 0:  # else the end of the backward pass of a whole step
                state = target.removesuffix("/adam")
                # The first of three gradients stays: the others are added to it, in place.
                sums = [f"microbatch{each}/accumulate/{state}" for each in (1, 2)]
                expected |= {(scoped(source), reader, size) for reader in (*sums, target)}
                expected |= {
                    (f"microbatch{each + 1}/{source}", sums[each], size) for each in (0, 1)
                }
                expected |= {(sums[0], sums[1], 0), (sums[1], target, 0)}
        # The loss is a third of the mean.
        expected.add((scoped("loss/nll_loss_forward"), scoped("loss/div"), 4))
        expected.add((scoped("gradients/loss/div/div_1"), scoped(backward), 4))
    assert edges(parts) == expected


def test_ops_know_their_microbatch_their_copy_and_their_phase(parts: ComputationGraph) -> None:
    for op, name in enumerate(parts.op_names):
        scope, _, rest = name.partition("/")
        number = int(scope.removeprefix("microbatch")) if scope.startswith("microbatch") else -1
        assert parts.microbatch[op] == number
        first = -1
        if number > 0 and not rest.startswith("accumulate/"):
            first = parts.op_names.index(f"microbatch0/{rest}")
        assert parts.copy_of[op] == first
        phase = UPDATE if name.endswith("/adam") else FORWARD
        if rest.startswith(("gradients/", "accumulate/")):
            phase = BACKWARD
        assert parts.phase[op] == phase


def test_a_copy_costs_a_microbatch_and_weights_are_there_once(
    whole: ComputationGraph, parts: ComputationGraph
) -> None:
    one = {name: number for number, name in enumerate(whole.op_names)}
    for op, name in enumerate(parts.op_names):
        _, _, rest = name.partition("/")
        same = one.get(name, one.get(rest) if parts.microbatch[op] >= 0 else None)
        if same is not None:
            for columns in ("flops", "param_bytes", "temp_bytes"):
                assert getattr(parts, columns)[op] == getattr(whole, columns)[same]
            assert parts.op_seconds["k80"][op] == whole.op_seconds["k80"][same]
    assert parts.param_bytes.sum() == whole.param_bytes.sum()
    assert parts.flops.sum() == 3 * whole.flops.sum()
    adds = [op for op, name in enumerate(parts.op_names) if "/accumulate/" in name]
    assert len(adds) == (3 - 1) * len(STATES)
    # Two gradients read, one written.
    weight = parts.op_names.index("microbatch1/accumulate/0.weight")
    bandwidth = 240e9
    assert parts.op_seconds["k80"][weight] == pytest.approx(3 * 96 / bandwidth, rel=1e-12)


@pytest.mark.parametrize("together", ["modules", "parameters"])
def test_copies_share_a_group_and_sums_are_where_their_parameter_is(together: str) -> None:
    source = f"{MODELS}:language?layers=1&batch=4&microbatches=2&together={together}"
    graph = extract(source).graph
    copies = np.flatnonzero(graph.copy_of >= 0)
    for grouping in ("auto", "papers", "none", 3):
        groups = PlacementProblem(graph, load_cluster("k80x2"), grouping).op_group
        assert np.array_equal(groups[copies], groups[graph.copy_of[copies]])
        for op, name in enumerate(graph.op_names):
            if "/accumulate/" in name:
                weight = graph.op_names.index(name.partition("/accumulate/")[2])
                assert groups[op] == groups[weight]


def test_1f1b_keeps_fewer_activations_than_gpipe(parts: ComputationGraph) -> None:
    peaks = {}
    for order in ("gpipe", "1f1b"):
        problem = PlacementProblem(parts, load_cluster("k80x2"), "none", order=order)
        peaks[order] = simulate(problem, np.zeros(problem.num_groups, int)).peak_memory.max()
    assert peaks["1f1b"] < peaks["gpipe"]


def test_files_have_it_all(parts: ComputationGraph, tmp_path: Any) -> None:
    save_graph(parts, tmp_path / "parts.json")
    assert load_graph(tmp_path / "parts.json") == parts


@pytest.mark.parametrize(
    ("make", "loss", "crosses", "count"),
    [
        (lambda: models.mlp(8), "crossentropy", False, 2),
        (lambda: models.mlp(8), "mse", False, 8),
        (lambda: models.language(batch=8, layers=1, tied=True), "crossentropy", False, 4),
        (models.with_loss, "auto", False, 4),
        (lambda: models.convolutions(8), "mse", True, 4),
    ],
)
def test_the_numbers_are_those_of_torch(make: Any, loss: str, crosses: bool, count: int) -> None:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    call, _ = make_call(make, "", mode, "here")
    call = divided(call, count, mode, "here")
    captured = capture(call, mode, training=True, loss=loss, where="here")
    module, inputs, given, state = drawn_step(make, loss)
    chunks = list(zip(*(each.chunk(count) for each in given), strict=True))

    total, sums = torch.zeros(()), dict.fromkeys(captured.gradients, torch.zeros(()))
    now = dict(state)
    for chunk in chunks:
        part, gradients, buffers = replayed(captured, now, chunk)
        total, now = total + part, now | buffers
        sums = {name: sums[name] + gradient for name, gradient in gradients.items()}

    # Where examples meet, in batch normalization, they do so within a microbatch in torch as well.
    batches = chunks if crosses else [tuple(given)]
    expected = sum(loss_of(module, inputs, batch, loss) for batch in batches) / len(batches)
    expected.backward()
    torch.testing.assert_close(total, expected.detach(), rtol=1e-5, atol=0)
    parameters = dict(module.named_parameters(remove_duplicate=False))
    largest = max(float(parameters[name].grad.abs().max()) for name in sums)
    assert largest > 1e-2
    for name, gradient in sums.items():
        torch.testing.assert_close(gradient, parameters[name].grad, rtol=0, atol=1e-5 * largest)
    after = module.state_dict()
    assert bool(captured.buffers) == crosses
    for name in captured.buffers:
        torch.testing.assert_close(now[name], after[name])


def test_batch_normalization_is_by_microbatch_in_turn() -> None:
    source = f"{MODELS}:convolutions?batch=8"
    assert not extract(source).graph.meta["warnings"]
    assert not extract(f"{source}&microbatches=2&inference=true").graph.meta["warnings"]
    graph = extract(f"{source}&microbatches=2").graph
    (warning,) = graph.meta["warnings"]
    assert "batch normalization is by microbatch" in warning
    # The second reads the mean and the variance that the first has left, not the buffers.
    norm = "norm/_native_batch_norm_legit_functional"
    reads = [
        (source, size) for source, target, size in edges(graph) if target.endswith(f"1/{norm}")
    ]
    assert sorted(reads) == [
        (f"microbatch0/{norm}", 4 * 8),
        ("microbatch1/conv/convolution", 4 * 4 * 8 * 8 * 8),
        ("norm.bias", 0),
        ("norm.weight", 0),
    ]


def test_inference_is_forward_alone_and_a_mask_is_not_divided() -> None:
    graph = extract(f"{MODELS}:masked?microbatches=4&inference=true").graph
    assert graph.num_microbatches == 4
    assert not graph.phase.any()
    (mask,) = np.flatnonzero(np.asarray(graph.op_types) == "constant")
    assert graph.microbatch[mask] == -1
    assert graph.tensor_bytes[graph.tensor_producer == mask].tolist() == [4 * 3 * 3]
    sources, targets = graph.op_edges
    assert graph.microbatch[targets[sources == mask]].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("mlp?microbatches=3", "microbatches=3 does not divide batch=8"),
        ("mlp?microbatches=0", "microbatches=0 does not divide batch=8"),
        ("mlp?microbatches=-2", "microbatches=-2 must not be negative"),
        ("mlp?microbatches=2.5", "microbatches=2.5 is not a whole number"),
        ("alone?inputs=8x4&microbatches=16", "microbatches=16 does not divide batch=8"),
        ("numbers?microbatches=2", "microbatches=2 of a module without an input that has a first"),
        ("vectors?microbatches=5", "torch.export cannot capture the module: "),
    ],
)
def test_batches_that_cannot_be_divided(source: str, message: str) -> None:
    with pytest.raises(PlacetoError, match=message) as raised:
        extract(f"{MODELS}:{source}")
    assert "\n" not in str(raised.value)
