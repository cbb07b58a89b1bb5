"""A scalar to train on, where a module returns something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from torch import Tensor

LOSSES = ("auto", "crossentropy", "mse")


def loss_targets(outputs: Any, choice: str, where: str) -> list[Tensor | None]:
    """What each output is compared with; nothing for an output that is a loss already.

    Args:
        outputs: what the module returned.
        choice: `crossentropy` (classes along the last dimension), `mse`, or `auto`: the
            cross-entropy of an output of two dimensions and more than one class, the mean square
            of others.
        where: what to call the source in messages.

    Returns:
        A tensor of class numbers, a tensor like the output, or None, for each tensor of `outputs`
        that a loss can be of.

    Raises:
        PlacetoError: an unknown choice, or nothing to train on.
    """
    import torch

    if choice not in LOSSES:
        raise PlacetoError(f"{where}: loss={choice} is unknown; losses: {', '.join(LOSSES)}")
    tensors = loss_inputs(outputs)
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


def loss_inputs(outputs: Any) -> list[Tensor]:
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
    """The sum of the losses of all outputs."""
    from torch.nn import functional

    total = None
    for tensor, target in zip(loss_inputs(outputs), targets, strict=True):
        if target is None:
            part = tensor
        elif target.dtype.is_floating_point or target.dtype.is_complex:
            part = functional.mse_loss(tensor, target)
        else:
            part = functional.cross_entropy(tensor.flatten(0, -2), target.flatten())
        total = part if total is None else total + part
    assert total is not None
    return total
