"""Functions that return PyTorch modules, as users name them, and what is said of others."""

from pathlib import Path

import numpy as np
import pytest

from placeto.cluster import Cluster, Device
from placeto.extraction import extract
from placeto.extraction.pytorch.ops import OPTIMIZERS
from placeto.extraction.source import parse_source
from placeto.extraction.user_code import is_pytorch
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.errors import PlacetoError

MODELS = "tests.extraction.pytorch.models"
FILE = """
import torch

def make(width: int = 3):
    return torch.nn.Linear(4, width), torch.zeros(8, 4)
"""


def test_what_a_function_imports_when_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "own_layers.py").write_text("from torch.nn import Linear as Layer\n")
    (tmp_path / "own_maker.py").write_text(
        "import torch\ndef make():\n    from own_layers import Layer\n"
        "    return Layer(4, 3), torch.zeros(8, 4)\n"
    )
    graph = extract(f"{tmp_path}/own_maker.py:make?inference=true").graph
    assert graph.flops.sum() == 2 * 8 * 4 * 3


def test_a_loss_of_its_own_and_keywords() -> None:
    graph = extract(f"{MODELS}:with_loss?optimizer=sgd").graph
    assert graph.op_types.count("nll_loss_forward") == 1
    assert not any(name.startswith("loss/") for name in graph.op_names)
    assert not any(name.startswith("targets") for name in graph.op_names)


def test_layers_that_may_be_left_out_are_all_there() -> None:
    graph = extract(f"{MODELS}:layer_drop").graph
    forward = [name for name in graph.op_names if "/addmm" in name and "grad" not in name]
    assert forward == ["layers.0/addmm", "layers.1/addmm_1", "layers.2/addmm_2"]
    assert not any("rand" in kind for kind in graph.op_types)


@pytest.mark.parametrize("name", ["drops", "reads_an_array", "reads_where"])
def test_weights_that_need_values(name: str) -> None:
    graph = extract(f"{MODELS}:{name}").graph
    assert graph.meta["warnings"] == [
        "the module was made with real weights, since its making reads values"
    ]
    assert graph.flops.sum() == 2 * 2 * 8 * 4 * 3  # forward, and the weight's gradient


def test_the_batch_is_what_the_function_calls_so() -> None:
    assert extract(f"{MODELS}:mlp").graph.batch == 8
    assert extract(f"{MODELS}:mlp?batch=3").graph.batch == 3
    assert extract(f"{MODELS}:half").graph.batch is None


def test_half_precision_is_said_to_be_timed_as_single() -> None:
    graph = extract(f"{MODELS}:half").graph
    assert graph.meta["warnings"] == [
        "addmm, mm compute in less than 32 bits, and are timed at the peak of 32"
    ]
    assert graph.param_bytes[graph.op_names.index("weight")] == 2 * 4 * 3


@pytest.mark.parametrize("parts", ["", "&microbatches=2"])
@pytest.mark.parametrize("kept", [2, 6])
def test_keys_and_values_of_the_cache_are_memory_of_attention(kept: int, parts: str) -> None:
    source = f"{MODELS}:heads?kept={kept}&inference=true{parts}"
    without, graph = extract(source).graph, extract(f"{source}&cache=100").graph
    more = graph.param_bytes - without.param_bytes
    # Two tensors of 4 sequences, 100 tokens, heads of 8 numbers, in each of 3 layers.
    assert more.sum() == 3 * 2 * 4 * 100 * kept * 8 * 4
    assert {graph.op_types[op] for op in np.flatnonzero(more)} == {
        "_scaled_dot_product_flash_attention_for_cpu"
    }
    cluster = Cluster("one", (Device("cpu", "cpu", 2**40),), ())
    peaks = [
        simulate(problem, [0] * problem.num_groups).peak_memory
        for problem in (PlacementProblem(each, cluster, "none") for each in (without, graph))
    ]
    assert peaks[1] - peaks[0] == more.sum()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("mlp?optimizer=adm", "optimizer=adm is unknown; expected sgd or momentum or rmsprop or"),
        ("mlp?loss=l1", "loss=l1 is unknown; losses: auto, crossentropy, mse"),
        ("mlp?bach=3", r"unknown option 'bach'; .*batch"),
        ("mlp?inputs=3x4", "inputs=3x4 beside the inputs that the function returns"),
        ("alone", r"no inputs for the module; return \(module, inputs\), or give their shapes"),
        ("alone?inputs=8,4,x", "inputs=x is not a shape such as 32x3x224x224"),
        ("alone?inputs=8x5", "torch.export cannot capture the module: a and b must have same"),
        ("number", "returned int, expected a torch.nn.Module, or a tuple of one and its inputs"),
        ("branching", "cannot capture the module: it reads a tensor's value, which is not known"),
        ("selecting", "how large a tensor is that aten.nonzero.default makes depends on values"),
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
        ("heads?cache=9", "cache=9: expected inference=true, too"),
        ("heads?cache=-1&inference=true", "cache=-1 must not be negative"),
        ("mlp?cache=9&inference=true", "there is no scaled_dot_product_attention"),
    ],
)
def test_what_cannot_be_extracted_is_said_in_one_line(source: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint) as raised:
        extract(f"{MODELS}:{source}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("stage", "options"),
    [
        ("list_ops", "loss=mse"),
        ("with_cache", "inference=true&cache=9"),
        ("colocation_keys", "together=parameters"),
        ("repeated", "microbatches=2"),
        ("tensor_columns", "loss=mse"),
    ],
)
def test_what_breaks_behind_the_trace_is_one_line(
    stage: str, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("seq_nr")

    monkeypatch.setattr(f"placeto.extraction.pytorch.source.{stage}", broken)
    complaint = "mlp.*: its trace cannot be turned into a graph: KeyError: 'seq_nr' "
    with pytest.raises(PlacetoError, match=complaint) as raised:
        extract(f"{MODELS}:mlp?{options}")
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value.__cause__, KeyError)


def test_where_it_broke_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text(FILE + "make.__signature__ = 3\n")
    with pytest.raises(PlacetoError, match=r"net\.py:make: TypeError: unexpected object 3"):
        extract(f"{tmp_path}/net.py:make")
    (tmp_path / "net.py").write_text(
        "import torch\nclass Net(torch.nn.Linear):\n    def state_dict(self, *given, **named):\n"
        "        return {}['own']\ndef make():\n    return Net(4, 3), torch.zeros(8, 4)\n"
    )
    with pytest.raises(PlacetoError, match=r"KeyError: 'own' \(.*net\.py, line 4\)"):
        extract(f"{tmp_path}/net.py:make?inference=true")
    monkeypatch.setitem(OPTIMIZERS, "sgd", ())  # type: ignore[arg-type]
    complaint = r"a graph: ValueError: .* \(placeto/extraction/pytorch/ops\.py, line \d+\)"
    with pytest.raises(PlacetoError, match=complaint):
        extract(f"{MODELS}:mlp?optimizer=sgd")


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
