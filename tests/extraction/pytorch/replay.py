"""Captured steps that are computed with real numbers, and what autograd makes of the same."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from placeto.extraction.pytorch.capture import Captured


def drawn_step(make: Any, loss: str) -> tuple[nn.Module, Any, list[Tensor], dict[str, Tensor]]:
    """A module and its inputs, random ones with what the output is compared with, and its state.

    A module that has its own loss, `"auto"`, is compared with nothing.
    """
    generator = torch.Generator().manual_seed(0)
    module, inputs = make()
    given = [
        torch.randint(0, 3, tensor.shape, generator=generator)
        if tensor.dtype == torch.int64
        else torch.randn(tensor.shape, generator=generator)
        for tensor in torch.utils._pytree.tree_leaves(inputs)
    ]
    if loss != "auto":
        with torch.no_grad():
            shape = module.eval()(*given).shape
        classes = torch.randint(0, 3, shape[:-1], generator=generator)
        given.append(torch.randn(shape, generator=generator) if loss == "mse" else classes)
    state = {name: value.clone() for name, value in module.train().state_dict().items()}
    return module, inputs, given, state


def loss_of(module: nn.Module, inputs: Any, given: Sequence[Tensor], loss: str) -> Tensor:
    """The loss by torch itself; `given` has the inputs, then the target."""
    if isinstance(inputs, dict):
        made: Tensor = module(**dict(zip(inputs, given, strict=True)))["loss"]
        return made
    *arguments, target = given
    outputs = module(*arguments)
    if loss == "mse":
        return nn.functional.mse_loss(outputs, target)
    return nn.functional.cross_entropy(outputs.flatten(0, -2), target.flatten())


def replayed(
    captured: Captured, state: dict[str, Tensor], given: Sequence[Tensor]
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """The loss of a captured step, gradients by parameter, and changed buffers by name."""
    rest = iter(given)
    tensors = [next(rest) if kind == "input" else state[name] for kind, name in captured.sources]
    replay = fx.Interpreter(fx.GraphModule({}, captured.graph))
    found = replay.run(*tensors, torch.tensor(1.0), enable_io_processing=False)
    names = [str(each) for each in list(captured.graph.nodes)[-1].args[0]]
    loss, gradients, buffers = (
        {name: found[names.index(str(node))] for name, node in nodes.items()}
        for nodes in ({"": captured.loss}, captured.gradients, captured.buffers)
    )
    return loss[""], gradients, buffers
