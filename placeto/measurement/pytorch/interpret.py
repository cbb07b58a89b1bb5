"""A captured step that runs op by op, each of them timed."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload

_MARK = "placeto:"


class TimedInterpreter(fx.Interpreter):
    """Runs a graph of ATen ops with data on a device.

    On the CPU the clock times each op, on a GPU `torch.profiler` the kernels of each. What the
    device has no kernel for is not run: its results are zeros.

    Args:
        graph: the ops; their `meta["val"]` says what they yield.
        device: where.
    """

    def __init__(self, graph: fx.Graph, device: torch.device) -> None:
        super().__init__(fx.GraphModule({}, graph))
        self.device = device
        self.missing: set[str] = set()
        self._seconds: dict[str, float] = {}

    def timed(self, values: Sequence[Any]) -> dict[str, float]:
        """Seconds of each op that ran, by the name of its node.

        Args:
            values: of the placeholders, in their order.
        """
        self._seconds = {}
        if self.device.type == "cpu":
            self.run(*values)
            return self._seconds
        from torch.profiler import ProfilerActivity, profile

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Profiler clears events")  # which is as wanted
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
                self.run(*values)
                torch.accelerator.synchronize()
        found = dict.fromkeys(self._seconds, 0.0)
        for event in profiled.events() or ():
            name = event.name.removeprefix(_MARK)
            if name in found and name != event.name and event.device_type.name == "CPU":
                found[name] += 1e-6 * event.device_time_total
        return found

    def run_node(self, node: fx.Node) -> Any:
        """Runs a node; of an op with the time it takes."""
        if node.op != "call_function" or node.name in self.missing:
            return self._made(node) if node.name in self.missing else super().run_node(node)
        try:
            if self.device.type != "cpu":
                with torch.profiler.record_function(f"{_MARK}{node.name}"):
                    made = super().run_node(node)
                self._seconds[node.name] = 0.0
                return made
            began = time.perf_counter()
            made = super().run_node(node)
            self._seconds[node.name] = time.perf_counter() - began
        except NotImplementedError:
            # PyTorch's for an op that the device has no kernel of; of others it is a failure.
            if not isinstance(node.target, OpOverload):
                raise
            self.missing.add(node.name)
            return self._made(node)
        return made

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Runs an op, on this device what was captured for the CPU."""
        if "device" in kwargs:
            kwargs = {**kwargs, "device": self.device}
        if self.device.type != "cpu":
            target = _ON_GPU.get(getattr(target, "overloadpacket", None), target)
        return super().call_function(target, args, kwargs)

    def _made(self, node: fx.Node) -> Any:
        def zeros(tensor: Tensor) -> Tensor:
            return torch.zeros(
                tuple(tensor.shape), dtype=tensor.dtype, device=self.device, requires_grad=False
            )

        return torch.utils._pytree.tree_map_only(Tensor, zeros, node.meta["val"])


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    bias = _bias(query, key, attn_mask)
    attention = torch.ops.aten._scaled_dot_product_efficient_attention
    found = attention(query, key, value, bias, True, dropout_p, is_causal, scale=scale)
    return found[0], found[1]


def _attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, ...]:
    backward = torch.ops.aten._scaled_dot_product_efficient_attention_backward
    none = torch.zeros((), dtype=torch.int64)
    found = backward(
        gradient, query, key, value, _bias(query, key, attn_mask), out, logsumexp, none, none,
        dropout_p, [True, True, True, False], is_causal, scale=scale,
    )  # fmt: skip
    return tuple(found[:3])


def _bias(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor | None:
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    return mask.expand(*query.shape[:3], key.shape[2])


_aten = torch.ops.aten
# Attention is captured as the CPU's kernel, which other devices do not have.
_ON_GPU: dict[Any, Callable[..., Any]] = {
    # What attention yields has other strides there, too.
    _aten.view: _aten.reshape,
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}
