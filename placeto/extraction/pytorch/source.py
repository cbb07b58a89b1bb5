"""`package.module:function?…` that returns a PyTorch module: its training step as a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.extraction.device_kinds import ROOFLINE, cost_meta, roofline
from placeto.extraction.pytorch.capture import Captured, capture
from placeto.extraction.pytorch.inputs import Call, divided, make_call
from placeto.extraction.pytorch.microbatches import columns, repeated
from placeto.extraction.pytorch.modules import colocation_keys
from placeto.extraction.pytorch.ops import OPTIMIZERS, STATE, Listed, Op, list_ops, with_cache
from placeto.extraction.result import Extraction, batch_meta, tensor_columns
from placeto.extraction.source import Source
from placeto.extraction.user_code import running, user_function
from placeto.graph import ComputationGraph
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress
from placeto.zoo.microbatches import BY_MICROBATCH

if TYPE_CHECKING:
    from torch import Tensor, nn

STEP_OPTIONS: dict[str, Any] = {
    "optimizer": "momentum",
    "loss": "auto",
    "inputs": "",
    "inference": False,
    "cache": 0,
    "microbatches": 1,
    "together": "modules",
}
_TOGETHER = ("modules", "parameters")
_NO_GRAPH = "its trace cannot be turned into a graph"


@dataclass(frozen=True, eq=False)
class Traced:
    """A module's step of one microbatch, and what is known of it.

    Attributes:
        source: where it comes from.
        make: the user's function, with its options filled in.
        options: those of `STEP_OPTIONS`.
        own: the function's own.
        call: the module, and what it is called with for one microbatch; without data.
        captured: the step as ATen ops.
        listed: the ops of a graph.
        names: parameter or buffer -> every name that it has in the module, its own first.
        keys: (num_ops,) what shares a device.
        warnings: for the user.
    """

    source: Source
    make: Callable[[], Any]
    options: Mapping[str, Any]
    own: Mapping[str, Any]
    call: Call
    captured: Captured
    listed: Listed
    names: Mapping[str, Sequence[str]]
    keys: Ints
    warnings: Sequence[str]


def extract_module(source: Source, say: Progress) -> Extraction:
    """The step that trains the module which a function returns, or its inference.

    Options beside the function's own: `optimizer` (sgd, momentum, rmsprop, adam), `loss` (auto,
    crossentropy, mse), `inputs` (shapes, where the function returns the module alone), `inference`
    (true: the forward pass alone), `cache` (of how many tokens an inference keeps keys and values,
    see `with_cache`), `microbatches` (into how many the batch, the first dimension of
    the first input, is divided), `together` (`modules`: what computes inside of one module
    that is placed whole shares a device; `parameters`: only what reads one parameter does).

    No weights are made: tensors have shapes and types, and no data.

    Raises:
        PlacetoError: unknown options, something else returned, a module that torch cannot export, a
            batch that cannot be divided.
    """
    graph, _ = graph_of(trace_module(source, say))
    say(f"{graph.num_ops} ops, {graph.num_edges} edges")
    return Extraction(graph, None)


def trace_module(source: Source, say: Progress) -> Traced:
    """Captures the step of a source.

    Raises:
        PlacetoError: see `extract_module`; whatever else is raised on the way is its `__cause__`.
    """
    from torch._subclasses import FakeTensorMode
    from torch.nn.modules.batchnorm import _BatchNorm

    make, options, own = user_function(source, STEP_OPTIONS)
    where = source.text
    for key, known in (("optimizer", OPTIMIZERS), ("together", _TOGETHER)):
        if options[key] not in known:
            raise PlacetoError(
                f"{where}: {key}={options[key]} is unknown; expected {' or '.join(known)}"
            )
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    training = not options["inference"]
    with running(source):
        call, warnings = make_call(make, options["inputs"], mode, where)
        call = divided(call, options["microbatches"], mode, where)
        names, owners = _names(call.module)
        say("capturing it with torch.export and AOTAutograd")
        captured = capture(call, mode, training=training, loss=options["loss"], where=where)
    with running(source, _NO_GRAPH):
        listed = list_ops(captured, names, options["optimizer"])
        if options["cache"]:
            if training:
                raise PlacetoError(
                    f"{where}: cache={options['cache']}: expected inference=true, too"
                )
            listed = with_cache(listed, options["cache"], where)
        if listed.narrow:
            warnings.append(
                f"{', '.join(listed.narrow)} compute in less than 32 bits, and are timed at the "
                "peak of 32"
            )
        parts = dict(call.module.named_modules(remove_duplicate=False))
        normalized = any(isinstance(part, _BatchNorm) for part in parts.values())
        if call.microbatches > 1 and training and normalized:
            warnings.append(BY_MICROBATCH)
        whole = options["together"] == "modules"
        keys = colocation_keys(listed.ops, owners, list(parts), whole=whole)
    return Traced(source, make, options, own, call, captured, listed, names, keys, warnings)


def graph_of(traced: Traced) -> tuple[ComputationGraph, list[int]]:
    """The graph of a whole step, and of which of the traced ops each op is, see `repeated`.

    Raises:
        PlacetoError: there is none; whatever was raised is its `__cause__`.
    """
    with running(traced.source, _NO_GRAPH):
        return _graph_of(traced)


def _graph_of(traced: Traced) -> tuple[ComputationGraph, list[int]]:
    import torch

    ops, keys, microbatches = traced.listed.ops, traced.keys, traced.call.microbatches
    origin = list(range(len(ops)))
    if microbatches > 1:
        ops, origin = repeated(ops, microbatches)
        keys = keys[origin]
    types = [op.type for op in ops]
    flops = np.array([op.flops for op in ops])
    stored = traced.call.module.state_dict()
    graph = ComputationGraph(
        name=traced.source.target,
        op_names=[op.name for op in ops],
        op_types=types,
        op_seconds=roofline(flops, np.array([op.moved_bytes for op in ops])),
        **_tensors(ops, keys),
        param_bytes=np.array([op.param_bytes for op in ops]),
        temp_bytes=np.array([op.temp_bytes for op in ops]),
        flops=flops,
        colocation=keys,
        **(columns(ops) if microbatches > 1 else {}),
        meta={
            "source": traced.source.text,
            **batch_meta(traced.own.get("batch")),
            "kind": "vision" if "convolution" in types else "sequence",
            "versions": {"torch": torch.__version__},
            "costs": cost_meta(
                f"{ROOFLINE} matrix products, convolutions and attention",
                "an optimizer's tensors; of other ops not known, 0",
            ),
            "pytorch": {
                "together": traced.options["together"],
                "modules": [op.path for op in ops],
                "called_once": traced.listed.called_once,
                "states": {
                    op.name: [name for name in traced.names[op.name] if name in stored]
                    for op in ops
                    if op.phase in STATE
                },
            },
            "warnings": list(traced.warnings),
        },
    )
    return graph, origin


def _names(module: nn.Module) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What a module calls its state.

    Returns:
        Every name of a parameter or buffer -> all of its names, its own first; of a parameter, its
        own name -> paths of the modules that hold it.
    """
    tensors: dict[str, Tensor] = dict(module.named_parameters(remove_duplicate=False))
    parameters = set(tensors)
    tensors.update(module.named_buffers(remove_duplicate=False))
    same: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        same.setdefault(id(tensor), []).append(name)
    owners = {
        names[0]: [name.rpartition(".")[0] for name in names]
        for names in same.values()
        if names[0] in parameters
    }
    return {name: names for names in same.values() for name in names}, owners


def _tensors(ops: Sequence[Op], keys: Ints) -> dict[str, Any]:
    reads = [(tensor, number) for number, op in enumerate(ops) for tensor in op.inputs]
    tensors = dict.fromkeys((tensor for tensor, _ in reads), 0)
    # State that lives, as `param_bytes`, where all its readers are is not sent.
    sent = {op for (op, _), reader in reads if keys[op] < 0 or keys[op] != keys[reader]}
    for number, op in enumerate(ops):
        stays = op.phase in STATE and number not in sent
        sizes = {(number, port): size for port, size in enumerate(op.output_bytes) if size > 0}
        tensors |= dict.fromkeys(sizes, 0) if stays else sizes
    return tensor_columns(dict(sorted(tensors.items())), reads)
