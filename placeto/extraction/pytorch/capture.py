"""The ATen graph of a module's training step: forward, loss, backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.extraction.pytorch.inputs import without_noise
from placeto.extraction.pytorch.loss import loss_targets, total_loss
from placeto.extraction.user_code import raised_at
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor, fx
    from torch._subclasses import FakeTensorMode

    from placeto.extraction.pytorch.inputs import Call

PARAMETER, BUFFER, CONSTANT, INPUT = "parameter", "buffer", "constant", "input"


@dataclass(frozen=True)
class Captured:
    """A step as one functional graph of ATen ops.

    Attributes:
        graph: placeholders in the order of `sources`, ops, and one output: what buffers become,
            then the results (of a training step the loss alone), then the gradient of each
            placeholder or None.
        sources: (kind, name) of each placeholder: `parameter`, `buffer`, `constant` or `input`; a
            name as in the module's `state_dict`.
        gradients: parameter -> the node that computes its gradient; none for inference.
        loss: the node of the loss; none for inference.
    """

    graph: fx.Graph
    sources: tuple[tuple[str, str], ...]
    gradients: Mapping[str, fx.Node]
    loss: fx.Node | None


def capture(call: Call, mode: FakeTensorMode, *, training: bool, loss: str, where: str) -> Captured:
    """Exports a module and differentiates it.

    `torch.export` makes the forward graph and AOTAutograd the joint one. Each node of it keeps the
    path of its module (`nn_module_stack`), and a backward node the number of its forward node
    (`seq_nr`).

    Args:
        call: a module and its arguments, all of them in `mode`.
        mode: without data.
        training: whether to differentiate; the module's own mode is set likewise.
        loss: see `loss_targets`.
        where: what to call the source in messages.

    Raises:
        PlacetoError: torch cannot export it, or there is nothing to train on.
    """
    import torch

    call.module.train(training)
    try:
        with mode, without_noise(), torch.set_grad_enabled(training):
            return _captured(call, mode, training, loss, where)
    except RuntimeError as error:
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise PlacetoError(
            f"{where}: torch.export cannot capture the module: {line}{raised_at(error)}"
        ) from error


def _captured(call: Call, mode: FakeTensorMode, training: bool, loss: str, where: str) -> Captured:
    import torch

    targets = []
    if training:
        targets = loss_targets(call.module(*call.args, **call.kwargs), loss, where)
    args = (call.args, call.kwargs, targets)
    exported = torch.export.export(_step_class()(call.module, training), args, strict=False)
    leaves = iter(torch.utils._pytree.tree_leaves(args))
    sources: list[tuple[str, str]] = []
    tensors: list[Tensor] = []
    others: dict[int, Any] = {}
    for position, spec in enumerate(exported.graph_signature.input_specs):
        kind = {"PARAMETER": PARAMETER, "BUFFER": BUFFER, "CONSTANT_TENSOR": CONSTANT}.get(
            spec.kind.name, INPUT
        )
        name = (spec.target or spec.arg.name).removeprefix("model.")
        if kind == INPUT:
            value = next(leaves)
        elif spec.target in exported.constants:
            value = exported.constants[spec.target]
        else:
            value = exported.state_dict[spec.target]
        if isinstance(value, torch.Tensor):
            sources.append((kind, name))
            tensors.append(value)
        else:
            others[position] = value
    graph = _joint(_runner(exported.graph_module, others), tensors, training)
    if sparse := next(filter(_is_sparse, graph.nodes), None):
        raise PlacetoError(
            f"{where}: {sparse} makes a sparse tensor, whose size is not known before it is "
            "computed; make it dense, such as an embedding with sparse=False"
        )
    if branch := next(filter(_is_branch, graph.nodes), None):
        raise PlacetoError(
            f"{where}: {branch.target} runs a part of the step or not, or again and again, as its "
            "values have it; a step has a fixed list of ops: write it without"
        )
    output = next(node for node in graph.nodes if node.op == "output")
    results = output.args[0]
    if not training:
        return Captured(graph, tuple(sources), {}, None)
    gradients = {
        name: gradient
        for (kind, name), gradient in zip(sources, results[-len(sources) :], strict=True)
        if kind == PARAMETER and gradient is not None
    }
    return Captured(graph, tuple(sources), gradients, results[-len(sources) - 1])


def _is_sparse(node: fx.Node) -> bool:
    import torch

    made = node.meta.get("val")
    return isinstance(made, torch.Tensor) and made.layout != torch.strided


def _is_branch(node: fx.Node) -> bool:
    import torch

    return isinstance(node.target, torch._ops.HigherOrderOperator)


def _step_class() -> type[Any]:
    import torch

    class Step(torch.nn.Module):
        """A module, and the loss of what it returns; the module's paths begin with `model`."""

        def __init__(self, model: torch.nn.Module, with_loss: bool) -> None:
            super().__init__()
            self.model = model
            self.with_loss = with_loss

        def forward(
            self, args: Sequence[Any], kwargs: Mapping[str, Any], targets: list[Tensor | None]
        ) -> Any:
            outputs = self.model(*args, **kwargs)
            return total_loss(outputs, targets) if self.with_loss else outputs

    return Step


def _runner(module: fx.GraphModule, others: Mapping[int, Any]) -> Callable[..., Any]:
    """The exported graph as a function of its tensors, node by node so that their meta is kept."""
    from torch.fx import Interpreter

    def run(*tensors: Tensor) -> Any:
        rest = iter(tensors)
        count = len(tensors) + len(others)
        arguments = [others[at] if at in others else next(rest) for at in range(count)]
        return Interpreter(module).run(*arguments)

    return run


def _joint(run: Callable[..., Any], tensors: Sequence[Tensor], training: bool) -> fx.Graph:
    import torch
    from functorch.compile import (  # type: ignore[import-untyped]
        aot_function,
        default_partition,
        nop,
    )

    kept: list[fx.GraphModule] = []

    def keep(module: fx.GraphModule, *_: Any) -> Any:
        kept.append(module)
        return module

    def partition(module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        kept.append(module)
        return default_partition(module, *args, **kwargs)

    with torch.fx.traceback.preserve_node_meta():
        if training:
            aot_function(run, nop, nop, partition_fn=partition)(*tensors)
        else:
            aot_function(run, keep)(*tensors)
    return kept[0].graph
