"""The ATen graph of a module's training step: forward, loss, backward."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.extraction.pytorch.inputs import Call, without_noise
from placeto.extraction.source import unknown
from placeto.extraction.user_code import raised_at, raised_in_library
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from torch import Tensor, fx
    from torch._subclasses import FakeTensorMode

PARAMETER, BUFFER, CONSTANT, INPUT = "parameter", "buffer", "constant", "input"
_KINDS = {"PARAMETER": PARAMETER, "BUFFER": BUFFER, "CONSTANT_TENSOR": CONSTANT}
_LOSSES = ("auto", "crossentropy", "mse")


@dataclass(frozen=True)
class Captured:
    """A step as one functional graph of ATen ops.

    Attributes:
        graph: placeholders in the order of `sources`, ops, and one output: what buffers become,
            then the results (of a training step the loss alone), then the gradient of each
            placeholder or None.
        sources: (kind, name) of each placeholder: `parameter`, `buffer`, `constant` or `input`; a
            name as in the module's `state_dict`.
        first_given: the number of the first placeholder that the module is called with.
        buffers: buffer that the step changes -> the node of what it becomes.
        gradients: parameter -> the node that computes its gradient; none for inference.
        loss: the node of the loss; none for inference.
    """

    graph: fx.Graph
    sources: tuple[tuple[str, str], ...]
    first_given: int
    buffers: Mapping[str, fx.Node]
    gradients: Mapping[str, fx.Node]
    loss: fx.Node | None


def capture(call: Call, mode: FakeTensorMode, *, training: bool, loss: str, where: str) -> Captured:
    """Exports a module and differentiates it.

    `torch.export` makes the forward graph and AOTAutograd the joint one. Each node of it keeps the
    path of its module (`nn_module_stack`), and a backward node the number of its forward node
    (`seq_nr`).

    Args:
        call: a module and its arguments, all of them in `mode`; of several microbatches, those of
            one, whose loss counts as its share of the mean.
        mode: without data.
        training: whether to differentiate; the module's own mode is set likewise.
        loss: `crossentropy` (classes along the last dimension), `mse`, or `auto`: the cross-entropy
            of an output of two dimensions and more than one class, the mean square of others.
        where: the source, in messages.

    Raises:
        PlacetoError: torch cannot export it, or there is nothing to train on.
    """
    import torch
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
    )

    call.module.train(training)
    targets: list[Tensor | None] = []
    try:
        with mode, without_noise(), _no_layer_dropped(), torch.set_grad_enabled(training):
            if training:
                targets = loss_targets(call.module(*call.args, **call.kwargs), loss, where)
            joint, sources, first_given = _exported(call, targets, training)
    except RuntimeError as error:
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if isinstance(error, DataDependentOutputException):
            line = (
                "it reads a tensor's value, which is not known before the step runs, such as by "
                "`.item()` or `if`"
            )
        elif isinstance(error, DynamicOutputShapeException):
            line = f"how large a tensor is that {error.func} makes depends on values"
        place = raised_at(error) or raised_in_library(error, "torch")
        raise PlacetoError(
            f"{where}: torch.export cannot capture the module: {line}{place}"
        ) from error
    graph, changed = joint
    for node in graph.nodes:
        made = node.meta.get("val")
        if isinstance(made, torch.Tensor) and made.layout != torch.strided:
            raise PlacetoError(
                f"{where}: {node} makes a sparse tensor, whose size is not known before it is "
                "computed; make it dense, such as an embedding with sparse=False"
            )
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            raise PlacetoError(
                f"{where}: {node.target} runs a part of the step or not, or again and again, as "
                "its values have it; a step has a fixed list of ops: write it without"
            )
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    buffers = {
        sources[index][1]: made
        for index, made in zip(changed, results, strict=False)
        if sources[index][0] == BUFFER
    }
    if not training:
        return Captured(graph, tuple(sources), first_given, buffers, {}, None)
    gradients = {
        name: gradient
        for (kind, name), gradient in zip(sources, results[-len(sources) :], strict=True)
        if kind == PARAMETER and gradient is not None
    }
    return Captured(
        graph, tuple(sources), first_given, buffers, gradients, results[-len(sources) - 1]
    )


@contextlib.contextmanager
def _no_layer_dropped() -> Iterator[None]:
    """A context in which a single random number is one half, and known.

    With such a number models decide whether a layer is left out of a training step (LayerDrop, Fan
    et al. 2019), at a rate far below that: in the captured step all layers are there.
    """
    import torch

    drawn = torch.rand

    def rand(*size: Any, **options: Any) -> Any:
        alone = len(size) == 1 and isinstance(size[0], list | tuple) and not size[0]
        return 0.5 if alone else drawn(*size, **options)

    torch.rand = rand
    try:
        yield
    finally:
        torch.rand = drawn


def loss_targets(outputs: Any, choice: str, where: str) -> list[Tensor | None]:
    """What each output is compared with: class numbers, a tensor like it, or None for a loss."""
    import torch

    if choice not in _LOSSES:
        raise unknown(where, f"loss={choice} is unknown", "losses", _LOSSES)
    tensors = _loss_inputs(outputs)
    if not tensors:
        raise PlacetoError(
            f"{where}: the module returns no floating-point tensor that depends on a parameter; "
            "there is nothing to train on (?inference=true extracts it as it is)"
        )
    targets: list[Tensor | None] = []
    for tensor in tensors:
        if tensor.dim() == 0:
            targets.append(None)
        elif choice == "crossentropy" and tensor.dim() == 1:
            raise PlacetoError(
                f"{where}: loss=crossentropy of an output of shape {tuple(tensor.shape)}; it needs "
                "classes along the last of two or more dimensions"
            )
        elif choice == "crossentropy" or (
            choice == "auto" and tensor.dim() == 2 and tensor.shape[1] > 1
        ):
            targets.append(torch.zeros(tensor.shape[:-1], dtype=torch.int64, device=tensor.device))
        else:
            targets.append(torch.zeros_like(tensor, requires_grad=False))
    return targets


def _loss_inputs(outputs: Any) -> list[Tensor]:
    """The tensors of a module's outputs that are trained on.

    An output called `loss`, as Hugging Face's models return it, is the only one.
    """
    import torch

    named = outputs.get("loss") if hasattr(outputs, "get") else getattr(outputs, "loss", None)
    if isinstance(named, torch.Tensor) and named.dim() == 0:
        return [named]
    leaves = torch.utils._pytree.tree_leaves(outputs)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def total_loss(outputs: Any, targets: list[Tensor | None]) -> Tensor:
    """The sum of the losses of a module's outputs, beside `loss_targets` of them."""
    from torch.nn import functional

    parts = []
    for tensor, target in zip(_loss_inputs(outputs), targets, strict=True):
        if target is None:
            parts.append(tensor)
        elif target.dtype.is_floating_point or target.dtype.is_complex:
            parts.append(functional.mse_loss(tensor, target))
        else:
            parts.append(functional.cross_entropy(tensor.flatten(0, -2), target.flatten()))
    return functools.reduce(operator.add, parts)


def _exported(
    call: Call, targets: list[Tensor | None], training: bool
) -> tuple[tuple[fx.Graph, list[int]], list[tuple[str, str]], int]:
    """What `_joint` makes of a call, the sources of the placeholders, and the first one given."""
    import torch

    class Step(torch.nn.Module):
        """A module, and the loss of what it returns; the module's paths begin with `model`."""

        def __init__(self) -> None:
            super().__init__()
            self.model = call.module

        def forward(
            self, args: Sequence[Any], kwargs: Mapping[str, Any], targets: list[Tensor | None]
        ) -> Any:
            outputs = self.model(*args, **kwargs)
            if not training:
                return outputs
            loss = total_loss(outputs, targets)
            return loss / call.microbatches if call.microbatches > 1 else loss

    args = (call.args, call.kwargs, targets)
    exported = torch.export.export(Step(), args, strict=False)
    leaves = iter(torch.utils._pytree.tree_leaves(args))
    arguments: list[Any] = []
    sources: list[tuple[str, str]] = []
    first_given = None
    for spec in exported.graph_signature.input_specs:
        kind = _KINDS.get(spec.kind.name, INPUT)
        if kind == INPUT:
            first_given = len(sources) if first_given is None else first_given
            arguments.append(next(leaves))
            if any(arguments[-1] is each for each in call.undivided):
                kind = CONSTANT
        elif spec.target in exported.constants:
            arguments.append(exported.constants[spec.target])
        else:
            arguments.append(exported.state_dict[spec.target])
        if isinstance(arguments[-1], torch.Tensor):
            sources.append((kind, (spec.target or spec.arg.name).removeprefix("model.")))

    def run(*tensors: Tensor) -> Any:
        rest = iter(tensors)
        given = [next(rest) if isinstance(each, torch.Tensor) else each for each in arguments]
        # Node by node, so that their meta is kept.
        return torch.fx.Interpreter(exported.graph_module).run(*given)

    tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
    first_given = len(sources) if first_given is None else first_given
    return _joint(run, tensors, training), sources, first_given


def _joint(
    run: Callable[..., Any], tensors: Sequence[Tensor], training: bool
) -> tuple[fx.Graph, list[int]]:
    """The graph, differentiated or not, and which of its placeholders its first results change."""
    import torch
    from functorch import compile as aot  # type: ignore[import-untyped]

    kept: list[fx.GraphModule] = []

    def keep(module: fx.GraphModule, *_: Any) -> Any:
        kept.append(module)
        return module

    def partition(module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        return aot.default_partition(keep(module), *args, **kwargs)

    context = torch._guards.TracingContext(None)
    with torch.fx.traceback.preserve_node_meta(), torch._guards.tracing(context):
        if training:
            aot.aot_function(run, aot.nop, aot.nop, partition_fn=partition)(*tensors)
        else:
            aot.aot_function(run, keep)(*tensors)
    assert context.fw_metadata is not None
    return kept[0].graph, context.fw_metadata.mutated_inp_runtime_indices
