"""Which ops share a device, since PyTorch computes inside of one module on one device."""

from typing import Any

import pytest

from placeto.extraction import extract
from placeto.extraction.pytorch.modules import colocation_keys
from placeto.extraction.pytorch.ops import Op
from placeto.graph import ComputationGraph

MODELS = "tests.extraction.pytorch.models"


def units(graph: ComputationGraph) -> set[frozenset[str | None]]:
    """The modules of the ops that share a device."""
    found: dict[int, set[str | None]] = {}
    paths = graph.meta["pytorch"]["modules"]
    for path, key in zip(paths, graph.colocation.tolist(), strict=True):
        if key >= 0:
            found.setdefault(key, set()).add(path)
    return {frozenset(paths) for paths in found.values()}


def block(number: int) -> frozenset[str]:
    inside = ("norm1", "attention", "attention.out_proj", "norm2", "mlp.0", "mlp.1", "mlp.2")
    return frozenset({f"blocks.{number}", *(f"blocks.{number}.{name}" for name in inside)})


def test_residual_connections_keep_a_block_whole() -> None:
    graph = extract(f"{MODELS}:language?loss=crossentropy").graph
    assert units(graph) == {
        # The sum of both embeddings is computed where they are.
        frozenset({"words", "places", ""}),
        block(0),
        block(1),
        frozenset({"norm"}),
        frozenset({"head", None}),  # and the loss
        frozenset({"unused"}),
    }
    alone = {name for name, key in zip(graph.op_names, graph.colocation, strict=True) if key < 0}
    assert alone == {"mask", "args_0", "targets_0", "arange"}


def test_a_shared_weight_keeps_its_modules_together() -> None:
    graph = extract(f"{MODELS}:language?tied=true&layers=1&inference=true").graph
    assert frozenset({"words", "places", "", "head"}) in units(graph)
    assert graph.meta["pytorch"]["states"]["words.weight"] == ["words.weight", "head.weight"]
    assert graph.op_names.count("words.weight") == 1
    assert "head.weight" not in graph.op_names


def test_functions_between_modules_are_where_their_inputs_are() -> None:
    graph = extract(f"{MODELS}:convolutions").graph
    assert units(graph) == {
        frozenset({"conv"}),
        frozenset({"norm", ""}),  # relu and pooling, in the model's own forward
        frozenset({"depthwise"}),
        frozenset({"out", None}),
    }


def test_a_module_with_a_buffer_is_whole_and_the_models_own_are_together() -> None:
    graph = extract(f"{MODELS}:scaled").graph
    masked = frozenset({"masked", "masked.first", "masked.second"})
    # `before` and `after` are where the model's inputs go, and so is what reads them.
    assert units(graph) == {masked, frozenset({"middle"}), frozenset({"", "out", None})}


def test_a_model_with_no_module_inside_of_it_is_whole() -> None:
    graph = extract(f"{MODELS}:vectors").graph
    assert "" in {path for paths in units(graph) for path in paths}
    paths = graph.meta["pytorch"]["modules"]
    assert len({key for path, key in zip(paths, graph.colocation, strict=True) if path == ""}) == 1


def test_together_by_parameters_alone() -> None:
    graph = extract(f"{MODELS}:mlp?together=parameters").graph
    keys = dict(zip(graph.op_names, graph.colocation.tolist(), strict=True))
    assert keys["0.weight"] == keys["0.weight/momentum"] == keys["0/addmm"] == keys["0.bias"]
    assert keys["0.weight"] != keys["2.weight"] == keys["gradients/2/addmm_1/mm"]
    assert keys["1/relu"] == keys["gradients/0/addmm/mm_2"] == -1


def test_every_update_is_with_its_parameter_and_every_backward_op_with_its_forward_op() -> None:
    graph = extract(f"{MODELS}:language?loss=crossentropy&optimizer=sgd&layers=1").graph
    keys = dict(zip(graph.op_names, graph.colocation.tolist(), strict=True))
    checked = 0
    for name, key in keys.items():
        if name.endswith("/sgd"):
            assert key == keys[name.removesuffix("/sgd")] >= 0
        elif name.startswith("gradients/"):
            forward = name.removeprefix("gradients/").rpartition("/")[0]
            # A view that backward ops belong to is no op of its own.
            assert key == keys.get(forward, key) >= 0
            checked += forward in keys
    assert checked > 20


def keys_by_hand(ops: list[Op], owners: dict[str, list[str]], paths: list[str]) -> Any:
    return colocation_keys(ops, owners, ["", *paths], whole=True).tolist()


def forward(name: str, path: str | None, *sources: int) -> Op:
    return Op(name, "op", "forward", path, tuple((source, 0) for source in sources))


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        # `outer` adds what it was given to what it computed: it is whole.
        ((2, 1), [-1, -1, 0, 0, 0]),
        # It adds what two modules inside of it computed: only these two are together.
        ((2, 3), [-1, -1, 0, -1, 0, 0]),
        # It adds up what one of them computed: it may be split.
        ((2,), [-1, -1, 0, -1, 0]),
    ],
)
def test_rules_by_hand(added: tuple[int, ...], expected: list[int]) -> None:
    ops = [
        Op("input", "input", "input", None, output_bytes=(4,)),
        forward("first", "first", 0),
        forward("outer.a", "outer.a", 1),
        forward("outer.b", "outer.b", 1),
        forward("sum", "outer", *added),
    ]
    if added == (2, 3):
        ops[3:3] = [forward("outer.c", "outer.c", 1)]
        ops[5] = forward("sum", "outer", 2, 4)
    paths = ["first", "outer", "outer.a", "outer.b", "outer.c"]
    assert keys_by_hand(ops, {}, paths) == expected


def test_a_parameter_that_is_passed_into_a_module_does_not_hold_it() -> None:
    ops = [
        Op("bias", "parameter", "parameter", "", output_bytes=(4,), param_bytes=4),
        Op("own.weight", "parameter", "parameter", "own", output_bytes=(4,), param_bytes=4),
        forward("own", "own", 1),
        forward("given", "other", 0),
    ]
    owners = {"bias": [""], "own.weight": ["own"]}
    assert keys_by_hand(ops, owners, ["own", "other"]) == [-1, 0, 0, -1]
