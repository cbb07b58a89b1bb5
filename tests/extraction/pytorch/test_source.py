"""Functions that return PyTorch modules, as users name them, and what is said of others."""

import logging
from pathlib import Path

import pytest

from placeto.extraction import extract
from placeto.extraction.source import parse_source
from placeto.extraction.user_code import is_pytorch
from placeto.graph import load_graph
from placeto.support.errors import PlacetoError

MODELS = "tests.extraction.pytorch.models"
FILE = """
import torch

def make(width: int = 3):
    return torch.nn.Linear(4, width), torch.zeros(8, 4)
"""


def test_a_file_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_model.py").write_text(FILE)
    extraction = extract(f"{tmp_path}/own_model.py:make?width=5&inference=true")
    assert extraction.graph.name == "make"
    assert extraction.graph.flops.sum() == 2 * 8 * 4 * 5
    assert extraction.save(tmp_path / "graph.json") is None
    assert load_graph(tmp_path / "graph.json") == extraction.graph
    assert sorted(path.name for path in tmp_path.glob("graph*")) == ["graph.json"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlacetoError, match=r"there is no file other\.py"):
        extract("other.py:make")
    with pytest.raises(PlacetoError, match=r"no function 'mak' \(did you mean make"):
        extract("own_model.py:mak")


def test_what_a_function_imports_when_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "own_layers.py").write_text("from torch.nn import Linear as Layer\n")
    (tmp_path / "own_maker.py").write_text(
        "import torch\ndef make():\n    from own_layers import Layer\n"
        "    return Layer(4, 3), torch.zeros(8, 4)\n"
    )
    graph = extract(f"{tmp_path}/own_maker.py:make?inference=true").graph
    assert graph.flops.sum() == 2 * 8 * 4 * 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import torch\ndef make(:\n", r"SyntaxError: .* \(own_wrong.py, line 2\)"),
        ("import torch\n1 / 0\n", r"ZeroDivisionError: division by zero \(.*wrong.py, line 2\)"),
        (
            "import torch\nimport no_such_module\n",
            r"no module 'no_such_module'; .*\.py, line 2",
        ),
        ("import torch\nfrom torch import no_such\n", r"ImportError: cannot import name 'no_such'"),
        (
            "import torch\ndef make():\n    torch.zeros(2)\n    raise KeyError('some')\n",
            r"own_wrong\.py:make: KeyError: 'some' \(.*own_wrong\.py, line 4\)",
        ),
    ],
)
def test_mistakes_of_a_file_are_said_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "own_wrong.py").write_text(text)
    with pytest.raises(PlacetoError, match=complaint) as raised:
        extract(f"{tmp_path}/own_wrong.py:make")
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is not None


def test_a_file_without_a_function(tmp_path: Path) -> None:
    (tmp_path / "own_model.py").write_text(FILE)
    with pytest.raises(PlacetoError, match=r"names no function; give .*own_model\.py:FUNCTION"):
        extract(f"{tmp_path}/own_model.py")


def test_torch_logs_nothing_of_what_the_error_says() -> None:
    lines: list[str] = []
    log = logging.getLogger("torch._subclasses.fake_tensor")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    try:
        with pytest.raises(PlacetoError):
            extract(f"{MODELS}:alone?inputs=8x5")
    finally:
        log.removeHandler(handler)
    assert lines == []
    assert not log.disabled


@pytest.mark.parametrize("query", ["", "?optimizer=some"])
def test_parameters_that_are_called_as_an_option_are_the_functions_own(query: str) -> None:
    graph = extract(f"{MODELS}:taken{query}").graph
    assert "weight/momentum" in graph.op_names


def test_shapes_of_inputs_in_the_source() -> None:
    graph = extract(f"{MODELS}:alone?inputs=16x4&inference=true").graph
    assert graph.flops.sum() == 2 * 16 * 4 * 3
    assert "gradients" not in " ".join(graph.op_names)


def test_a_loss_of_its_own_and_keywords() -> None:
    graph = extract(f"{MODELS}:with_loss?optimizer=sgd").graph
    assert graph.op_types.count("nll_loss_forward") == 1
    assert not any(name.startswith("loss/") for name in graph.op_names)
    assert not any(name.startswith("targets") for name in graph.op_names)


@pytest.mark.parametrize("name", ["drops", "reads_an_array", "reads_where"])
def test_weights_that_need_values(name: str) -> None:
    graph = extract(f"{MODELS}:{name}").graph
    assert graph.meta["warnings"] == [
        "the module was made with real weights, since its making reads values"
    ]
    assert graph.flops.sum() == 2 * 2 * 8 * 4 * 3  # forward, and the weight's gradient


def test_half_precision_is_said_to_be_timed_as_single() -> None:
    graph = extract(f"{MODELS}:half").graph
    assert graph.meta["warnings"] == [
        "addmm, mm compute in less than 32 bits, and are timed at the peak of 32"
    ]
    assert graph.param_bytes[graph.op_names.index("weight")] == 2 * 4 * 3


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("mlp?optimizer=adm", "optimizer=adm is unknown; expected sgd or momentum or rmsprop or"),
        ("mlp?together=layers", "together=layers is unknown; expected modules or parameters"),
        ("mlp?loss=l1", "loss=l1 is unknown; losses: auto, crossentropy, mse"),
        ("mlp?bach=3", r"unknown option 'bach' \(did you mean batch\?\)"),
        ("mlp?inference=1", "inference=1 is not true or false"),
        ("mlp?inputs=3x4", "inputs=3x4 beside the inputs that the function returns"),
        ("alone", r"no inputs for the module; return \(module, inputs\), or give their shapes"),
        ("alone?inputs=8,4,x", "inputs=x is not a shape such as 32x3x224x224"),
        ("alone?inputs=8x4:intt", "inputs=8x4:intt is not a shape such as"),
        ("alone?inputs=8x5", "torch.export cannot capture the module: a and b must have same"),
        ("number", "returned int, expected a torch.nn.Module, or a tuple of one and its inputs"),
        ("branching", "torch.export cannot capture the module: "),
        (
            "broken?inference=true",
            r"no attribute 'nothing' \(.*models\.py, line \d+\)",
        ),
        (
            "shaped?widths=3",
            r"widths=3 is not a tuple, which a source cannot give",
        ),
        ("flat?loss=crossentropy", r"loss=crossentropy of an output of shape \(8,\)"),
        ("sparse", "makes a sparse tensor, whose size is not known"),
        ("branch?inference=true", "cond runs a part of the step or not"),
        ("counting", "no floating-point tensor that depends on a parameter"),
    ],
)
def test_what_cannot_be_extracted_is_said_in_one_line(source: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint) as raised:
        extract(f"{MODELS}:{source}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import torch\n", True),
        ("def make():\n    from torch import nn\n", True),
        ("import torch\nimport keras\n", False),
        ("import keras  # not torch\n", False),
        ("import numpy\n", False),
        ("import numpy as np, torch\n", True),
        ("import torch, keras\n", False),
        # Found in a time that does not double with each name.
        (f"import {', '.join('abcdefghijklmnopqrstuvwxyz' * 4)}\n", False),
    ],
)
def test_which_framework_a_module_is_of(tmp_path: Path, text: str, answer: bool) -> None:
    (tmp_path / "some.py").write_text(text)
    assert is_pytorch(parse_source(f"{tmp_path}/some.py:make")) is answer
