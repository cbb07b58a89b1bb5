"""`package.module:function?…` that returns a PyTorch module: its training step as a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.extraction.pytorch.capture import capture
from placeto.extraction.pytorch.inputs import make_call
from placeto.extraction.pytorch.modules import colocation_keys
from placeto.extraction.pytorch.ops import OPTIMIZERS, STATE, Op, list_ops
from placeto.extraction.result import Extraction
from placeto.extraction.roofline import cost_meta, roofline
from placeto.extraction.source import take_options
from placeto.extraction.user_code import find_function, parameters, running
from placeto.graph import ComputationGraph
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from placeto.extraction.source import Source

STEP_OPTIONS: dict[str, Any] = {
    "optimizer": "momentum",
    "loss": "auto",
    "inputs": "",
    "inference": False,
    "together": "modules",
}
_TOGETHER = ("modules", "parameters")


@dataclass(frozen=True)
class _Names:
    """What a module calls its state.

    Attributes:
        of: every name of a parameter or buffer -> all of its names, its own first.
        owners: its own name -> paths of the modules that hold it, of a parameter.
        paths: of all modules.
    """

    of: dict[str, list[str]]
    owners: dict[str, list[str]]
    paths: list[str]


def extract_module(source: Source, say: Progress) -> Extraction:
    """The step that trains the module which a function returns, or its inference.

    Options beside the function's own: `optimizer` (sgd, momentum, rmsprop, adam), `loss` (auto,
    crossentropy, mse), `inputs` (shapes, where the function returns the module alone), `inference`
    (true: the forward pass alone), `together` (`modules`: what computes inside of one module
    that is placed whole shares a device; `parameters`: only what reads one parameter does).

    No weights are made: tensors have shapes and types, and no data.

    Raises:
        PlacetoError: unknown options, something else returned, a module that torch cannot export.
    """
    import torch
    from torch._subclasses import FakeTensorMode

    make = find_function(source)
    own = parameters(source, make)
    taken = take_options(source, {**STEP_OPTIONS, **own}, own)
    # What the function takes under the same name is its own.
    options = {key: default if key in own else taken[key] for key, default in STEP_OPTIONS.items()}
    where = source.text
    for key, known in (("optimizer", OPTIMIZERS), ("together", _TOGETHER)):
        if options[key] not in known:
            raise PlacetoError(
                f"{where}: {key}={options[key]} is unknown; expected {' or '.join(known)}"
            )
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = {key: taken[key] for key in own if key in source.options}
    with running(source):
        call, warnings = make_call(lambda: make(**given), options["inputs"], mode, where)
        names, stored = _names(call.module), call.module.state_dict()
        say("capturing it with torch.export and AOTAutograd")
        training = not options["inference"]
        captured = capture(call, mode, training=training, loss=options["loss"], where=where)
    ops, narrow = list_ops(captured, names.of, options["optimizer"])
    if narrow:
        warnings += (
            f"{', '.join(narrow)} compute in less than 32 bits, and are timed at the peak of 32",
        )
    keys = colocation_keys(ops, names.owners, names.paths, whole=options["together"] == "modules")
    meta = {
        "source": where,
        "kind": "vision" if any(op.type == "convolution" for op in ops) else "sequence",
        "versions": {"torch": torch.__version__},
        "costs": cost_meta("matrix products, convolutions and attention"),
        "pytorch": {
            "together": options["together"],
            "modules": [op.path for op in ops],
            "states": {
                op.name: [name for name in names.of[op.name] if name in stored]
                for op in ops
                if op.phase in STATE
            },
        },
        "warnings": list(warnings),
    }
    graph = _graph(source.target, ops, keys, meta)
    say(f"{graph.num_ops} ops, {graph.num_edges} edges")
    return Extraction(graph, None)


def _names(module: nn.Module) -> _Names:
    tensors: dict[str, Tensor] = dict(module.named_parameters(remove_duplicate=False))
    parameters = set(tensors)
    tensors.update(module.named_buffers(remove_duplicate=False))
    same: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        same.setdefault(id(tensor), []).append(name)
    return _Names(
        of={name: names for names in same.values() for name in names},
        owners={
            names[0]: [name.rpartition(".")[0] for name in names]
            for names in same.values()
            if names[0] in parameters
        },
        paths=[path for path, _ in module.named_modules(remove_duplicate=False)],
    )


def _graph(
    name: str, ops: Sequence[Op], keys: NDArray[np.int64], meta: dict[str, Any]
) -> ComputationGraph:
    consumers: dict[tuple[int, int], list[int]] = {
        (number, port): []
        for number, op in enumerate(ops)
        for port, size in enumerate(op.output_bytes)
        if size > 0
    }
    for number, op in enumerate(ops):
        for tensor in op.inputs:
            consumers.setdefault(tensor, []).append(number)
    rows = sorted(consumers)
    flops = np.array([op.flops for op in ops])
    return ComputationGraph(
        name=name,
        op_names=[op.name for op in ops],
        op_types=[op.type for op in ops],
        op_seconds=roofline(flops, [op.moved_bytes for op in ops]),
        tensor_producer=np.array([op for op, _ in rows], dtype=np.int64),
        tensor_bytes=np.array(
            [_sent_bytes(ops, keys, row, consumers[row]) for row in rows], dtype=np.int64
        ),
        edge_tensor=np.array(
            [index for index, row in enumerate(rows) for _ in consumers[row]], dtype=np.int64
        ),
        edge_consumer=np.array([op for row in rows for op in consumers[row]], dtype=np.int64),
        param_bytes=np.array([op.param_bytes for op in ops]),
        flops=flops,
        colocation=keys,
        meta=meta,
    )


def _sent_bytes(
    ops: Sequence[Op], keys: NDArray[np.int64], tensor: tuple[int, int], consumers: Sequence[int]
) -> int:
    """Bytes of a tensor; none for state that lives, as `param_bytes`, where all its readers are."""
    number, port = tensor
    here = keys[number]
    if ops[number].phase in STATE and (
        not consumers or (here >= 0 and all(keys[consumer] == here for consumer in consumers))
    ):
        return 0
    return ops[number].output_bytes[port]
