"""The module that a user's function makes, and what it is called with."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError
from placeto.zoo.microbatches import checked

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch._subclasses import FakeTensorMode

    # By `id`: the tensor, which has to live as long as its `id` is known, and one without data.
    Fakes = dict[int, tuple[Tensor, Tensor]]

_SHAPE = re.compile(r"(\d+(?:x\d+)*)(?::(\w+))?")


@dataclass(frozen=True)
class Call:
    """A module and the arguments of its `forward`, all of them without data.

    Attributes:
        module: what is called.
        args: tensors, or anything that holds some.
        kwargs: the same.
        microbatches: how many such calls a step has.
        undivided: tensors among the arguments that all of these have in common.
    """

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    microbatches: int = 1
    undivided: tuple[Tensor, ...] = ()


def make_call(
    make: Callable[[], Any], inputs: str, mode: FakeTensorMode, where: str
) -> tuple[Call, list[str]]:
    """Calls a user's function so that the tensors which it makes take no memory.

    The function returns a module, or a module and its inputs: a tensor, a tuple of positional
    arguments, or a dict of keyword arguments. Where it needs values that such tensors do not have,
    it is called again with real ones, which are then replaced.

    Args:
        make: the function, with its options filled in.
        inputs: shapes of the inputs, where the function returns the module alone:
            `32x3x224x224`, several separated by commas, `8x128:int64` for another type.
        mode: that the tensors are to belong to.
        where: the source, in messages.

    Returns:
        The call, and warnings.

    Raises:
        PlacetoError: something else was returned, or there are no inputs.
    """
    import torch
    from torch._subclasses import fake_tensor as fake

    said: list[str] = []
    try:
        with mode, without_noise(), _copies_without_data():
            made = make()
    except RuntimeError as error:
        needs_values = (
            fake.DataDependentOutputException
            | fake.DynamicOutputShapeException
            | fake.UnsupportedFakeTensorException
            | fake.UnsupportedOperatorException
        )
        if not (isinstance(error, needs_values) or ".numpy() is not supported" in str(error)):
            raise
        said.append("the module was made with real weights, since its making reads values")
        made = make()
    module, *rest = made if isinstance(made, tuple) else (made,)
    if not isinstance(module, torch.nn.Module) or len(rest) > 1:
        raise PlacetoError(
            f"{where}: returned {type(made).__name__}, expected a torch.nn.Module, or a tuple of "
            "one and its inputs"
        )
    if rest and inputs:
        raise PlacetoError(f"{where}: inputs={inputs} beside the inputs that the function returns")
    if not rest and not inputs:
        raise PlacetoError(
            f"{where}: no inputs for the module; return (module, inputs), or give their shapes "
            "as ?inputs=32x3x224x224"
        )
    given = rest[0] if rest else _of_shapes(inputs, mode, where)
    known: Fakes = {}
    for part in module.modules():
        for name, tensor in [*part._parameters.items(), *part._buffers.items()]:
            if tensor is not None:
                # Not into the dicts: recurrent layers have a list of their weights besides.
                setattr(part, name, _fake(tensor, mode, known))
    given = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: _fake(t, mode, known), given)
    if isinstance(given, dict):
        return Call(module, (), given), said
    return Call(module, given if isinstance(given, tuple) else (given,)), said


def real_call(make: Callable[[], Any], inputs: str, microbatches: int, where: str) -> Call:
    """The call of one microbatch, with data; see `make_call` and `divided`."""
    made = make()
    module, *rest = made if isinstance(made, tuple) else (made,)
    given = rest[0] if rest else _of_shapes(inputs, contextlib.nullcontext(), where)
    args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    call = Call(module, args if isinstance(args, tuple) else (args,), kwargs)
    return divided(call, microbatches, contextlib.nullcontext(), where)


def divided(call: Call, microbatches: int, mode: AbstractContextManager[Any], where: str) -> Call:
    """The call of one of several microbatches.

    The first dimension of the first input is the batch, and so is that of every other input where
    it is as long. The rest, such as a mask, is undivided.

    Args:
        call: with the whole batch.
        microbatches: how many equal parts it is divided into.
        mode: of its tensors.
        where: the source, in messages.

    Raises:
        PlacetoError: the batch cannot be divided so, or there is none.
    """
    import torch

    if microbatches == 1:
        return call
    leaves = torch.utils._pytree.tree_leaves((call.args, call.kwargs))
    tensors = [each for each in leaves if isinstance(each, torch.Tensor)]
    batch = next((len(each) for each in tensors if each.dim() > 0), None)
    if batch is None:
        raise PlacetoError(
            f"{where}: microbatches={microbatches} of a module without an input that has a first "
            "dimension; give it its batch as a tensor"
        )
    examples = checked(where, batch, microbatches)
    whole = tuple(each for each in tensors if each.dim() == 0 or len(each) != batch)

    def part(tensor: Tensor) -> Tensor:
        if any(tensor is each for each in whole):
            return tensor
        # A copy, since a view would count with the bytes of all.
        return tensor.detach()[:examples].clone().requires_grad_(tensor.requires_grad)

    with mode:
        args, kwargs = torch.utils._pytree.tree_map_only(
            torch.Tensor, part, (call.args, call.kwargs)
        )
    return Call(call.module, args, kwargs, microbatches, whole)


def _of_shapes(inputs: str, mode: AbstractContextManager[Any], where: str) -> tuple[Tensor, ...]:
    import torch

    tensors = []
    for text in inputs.split(","):
        match = _SHAPE.fullmatch(text)
        dtype = getattr(torch, match[2] or "float32", None) if match else None
        if match is None or not isinstance(dtype, torch.dtype):
            raise PlacetoError(
                f"{where}: inputs={text} is not a shape such as 32x3x224x224 or 8x128:int64"
            )
        with mode:
            tensors.append(torch.zeros([int(size) for size in match[1].split("x")], dtype=dtype))
    return tuple(tensors)


def _fake(tensor: Tensor, mode: FakeTensorMode, known: Fakes) -> Tensor:
    """A tensor without data, the same one for a tensor that is shared."""
    import torch
    from torch._subclasses import FakeTensor

    if id(tensor) not in known:
        fake: Tensor = tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor)
        if fake.device.type == "meta":
            # What is made on `meta` has no data either, and is combined with what is not on it.
            with mode:
                fake = torch.empty_like(fake, device="cpu").requires_grad_(tensor.requires_grad)
            if isinstance(tensor, torch.nn.Parameter):
                fake = torch.nn.Parameter(fake, tensor.requires_grad)
        known[id(tensor)] = tensor, fake
    return known[id(tensor)][1]


@contextlib.contextmanager
def _copies_without_data() -> Iterator[None]:
    """A context in which a deep copy of a tensor without data has none either, and the same mode.

    Modules such as `nn.Transformer` copy their layers. torch (2.13) copies what is at the address
    that such a tensor does not have, and its mode.
    """
    import torch
    from torch._subclasses import FakeTensor

    def copied(tensor: FakeTensor, memo: dict[int, Any]) -> Tensor:
        if id(tensor) not in memo:
            made: Tensor = tensor.detach().clone().requires_grad_(tensor.requires_grad)
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, tensor.requires_grad)
            memo[id(tensor)] = made
        found: Tensor = memo[id(tensor)]
        return found

    FakeTensor.__deepcopy__ = copied  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del FakeTensor.__deepcopy__


@contextlib.contextmanager
def without_noise() -> Iterator[None]:
    """A context in which torch keeps to itself what an error or a warning of placeto's says."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    disabled, log.disabled = log.disabled, True
    try:
        with warnings.catch_warnings():
            # A weight of no elements; said of every weight that has no data.
            warnings.filterwarnings("ignore", "Initializing zero-element tensors is a no-op")
            # Of recurrent layers, whose lists of weights torch.export exchanges.
            warnings.filterwarnings("ignore", r"The tensor attributes? .*\._flat_weights\[")
            yield
    finally:
        log.disabled = disabled
