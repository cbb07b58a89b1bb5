"""The translation model: its size, its work, and the names of its parts."""

import re

import pytest

pytest.importorskip("tensorflow", reason="the zoo needs placeto[tensorflow]")

from placeto.extraction import extract
from placeto.graph import ComputationGraph
from tests.extraction.macs import forward_macs

LAYERS, BATCH, LENGTH, HIDDEN, VOCABULARY = 2, 3, 4, 8, 30


@pytest.fixture(scope="module")
def graph() -> ComputationGraph:
    return extract(
        f"zoo:nmt?layers={LAYERS}&batch={BATCH}&length={LENGTH}&hidden={HIDDEN}"
        f"&vocabulary={VOCABULARY}"
    ).graph


def test_parameters(graph: ComputationGraph) -> None:
    tables = 2 * VOCABULARY * HIDDEN
    encoder = LAYERS * (2 * HIDDEN * 4 * HIDDEN + 4 * HIDDEN)
    decoder = LAYERS * (3 * HIDDEN * 4 * HIDDEN + 4 * HIDDEN)
    attention = 2 * HIDDEN * HIDDEN + HIDDEN
    softmax = HIDDEN * VOCABULARY + VOCABULARY
    assert graph.param_bytes.sum() == 4 * (tables + encoder + decoder + attention + softmax)


def test_adam_keeps_two_slots_and_two_powers() -> None:
    options = f"layers=1&batch={BATCH}&length=2&hidden={HIDDEN}&vocabulary={VOCABULARY}"
    plain = extract(f"zoo:nmt?{options}").graph.param_bytes.sum()
    assert extract(f"zoo:nmt?{options}&optimizer=adam").graph.param_bytes.sum() == 3 * plain + 8


def test_work_of_the_forward_products(graph: ComputationGraph) -> None:
    encoder = LAYERS * LENGTH * BATCH * 2 * HIDDEN * 4 * HIDDEN
    decoder = LAYERS * LENGTH * BATCH * 3 * HIDDEN * 4 * HIDDEN
    attention = 2 * LENGTH * BATCH * HIDDEN * HIDDEN
    softmax = LENGTH * BATCH * HIDDEN * VOCABULARY
    assert forward_macs(graph) == encoder + decoder + attention + softmax


def test_every_costly_op_says_which_part_it_belongs_to(graph: ComputationGraph) -> None:
    part = re.compile(
        r"^(gradient_tape/|ConstantFolding/|update/)*(embedding|encoder/layer_\d+|decoder/layer_\d+"
        r"|decoder/start|attention|softmax)/|^clip/"
    )
    for name, seconds in zip(graph.op_names, graph.op_seconds["k80"], strict=True):
        assert seconds == 0 or part.match(name), name


def test_variables_are_read_once(graph: ComputationGraph) -> None:
    assert graph.op_types.count("ReadVariableOp") == graph.op_types.count("VarHandleOp") - 2


def test_each_layer_past_the_second_adds_as_many_ops() -> None:
    # Attention's answer reaches one more layer with the second, so that its gradients add up.
    ops = [
        extract(f"zoo:nmt?layers={layers}&batch=2&length=2&hidden=4&vocabulary=9").graph.num_ops
        for layers in (2, 3, 4)
    ]
    assert ops[2] - ops[1] == pytest.approx(ops[1] - ops[0], rel=0.02)
