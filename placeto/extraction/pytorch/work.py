"""Floating-point operations and bytes of ATen ops, and which of them move nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, fx

# They read as many rows of their first input as they put out.
_ROWS = frozenset({"embedding", "gather", "index", "index_select"})
_DROPOUT = "function.dropout"
# They sum up as many rows of their first input as the second has elements.
_BAGS = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})
# Products of a matrix or vector with a vector: which argument's elements are each read once.
_VECTOR_PRODUCTS = {"mv": 0, "addmv": 1, "dot": 0, "vdot": 0}
# A layer's passes over its weights: backward, the gradients of its input and of its weights.
_RECURRENT = {"mkldnn_rnn_layer": 1, "mkldnn_rnn_layer_backward": 2}


def op_type(node: fx.Node) -> str:
    """`aten.mm.default` -> `mm`; ops of other libraries keep their name space."""
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(packet).removeprefix("aten.")


def outputs(node: fx.Node) -> list[Tensor | None]:
    """The tensors that a node yields, by port."""
    import torch

    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    return [each if isinstance(each, torch.Tensor) else None for each in values]


def is_view(node: fx.Node) -> bool:
    """Whether a node yields the memory of its first input under other strides."""
    if op_type(node) == "_unsafe_view":  # whose schema does not say so
        return True
    if op_type(node) == "clone" and node.meta.get("torch_fn", ("",))[-1] == _DROPOUT:
        return True  # of nothing that is dropped: PyTorch returns what it is given
    schema = getattr(node.target, "_schema", None)
    aliases = [argument.alias_info for argument in schema.arguments] if schema is not None else []
    return any(alias is not None and not alias.is_write for alias in aliases)


def is_whole_view(node: fx.Node) -> bool:
    """Whether a view has every element of its input, as a transpose has, and a slice has not."""
    if not is_view(node):
        return False
    (made, *others), (base, *_) = outputs(node), outputs(node.all_input_nodes[0])
    return made is not None and base is not None and not others and made.numel() >= base.numel()


def tensor_bytes(tensor: Tensor | None) -> int:
    """Bytes that a tensor takes: an expanded one no more than what it was expanded from."""
    if tensor is None:
        return 0
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def moved_bytes(node: fx.Node) -> int:
    """Bytes that an op reads and writes: each input and each output once; none for a view."""
    if is_view(node):
        return 0
    written = sum(map(tensor_bytes, outputs(node)))
    rows, inputs = 0, node.all_input_nodes
    if op_type(node) in _BAGS:
        table, indices = inputs[0].meta["val"], inputs[1].meta["val"]
        rows, inputs = int(indices.numel() * table.shape[1] * table.element_size()), inputs[1:]
    elif op_type(node) in _ROWS:
        rows, inputs = written, inputs[1:]
    read = sum(tensor_bytes(tensor) for each in inputs for tensor in outputs(each))
    return written + rows + read


def flops(node: fx.Node) -> float:
    """Floating-point operations of a matrix product, a convolution or an attention; of others 0.

    By the formulas of `torch.utils.flop_counter`, which lacks products with vectors and recurrent
    layers, and counts the weight's gradient of a convolution in groups as if there were none; a
    fused multiply-add counts as two.
    """
    import torch
    from torch.utils.flop_counter import flop_registry

    kind = op_type(node)
    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None and "_for_cpu" in kind:
        # The same attention, under the name of another device's kernel.
        formula = flop_registry.get(getattr(torch.ops.aten, kind.replace("_for_cpu", ""), None))
    args: Any = torch.fx.node.map_arg(node.args, _value)
    if kind in _VECTOR_PRODUCTS:
        return 2.0 * int(args[_VECTOR_PRODUCTS[kind]].numel())
    if kind in _RECURRENT:
        steps = args[0].shape[0] * args[0].shape[1]
        return 2.0 * _RECURRENT[kind] * int(steps * (args[1].numel() + args[2].numel()))
    if kind == "convolution_backward":
        made, read, weights, transposed, wanted = args[0], args[1], args[2], args[7], args[-1]
        forward = 2 * (read if transposed else made).numel() * weights[0].numel()
        return float(forward * sum(wanted[:2]))
    if formula is None:
        return 0.0
    kwargs = torch.fx.node.map_arg(node.kwargs, _value)
    return float(formula(*args, **kwargs, out_val=node.meta["val"]))


def is_attention(node: fx.Node) -> bool:
    """Whether a node is `scaled_dot_product_attention`, forward, by whatever kernel."""
    kind = op_type(node)
    return "scaled_dot_product" in kind and "backward" not in kind


def bytes_of_a_token(node: fx.Node) -> int:
    """Bytes of keys and values that an attention reads of one token of each sequence."""
    total = 0
    keys_and_values: Any = node.args[1:3]
    for given in keys_and_values:
        length = _value(given).shape[-2]
        least = tensor_bytes(_value(given))
        # A head's copies for several heads of queries are not kept.
        while is_view(given) or op_type(given) == "clone":
            given = given.all_input_nodes[0]
            least = min(least, tensor_bytes(_value(given)))
        total += least // length
    return total


def _value(node: fx.Node) -> Any:
    return node.meta["val"]
