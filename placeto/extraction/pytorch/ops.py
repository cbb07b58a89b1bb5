"""The ops of a captured step: what each reads, and which module it is of."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placeto.extraction.pytorch import work
from placeto.extraction.pytorch.capture import BUFFER, PARAMETER, Captured
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from torch import fx

GRADIENTS = "gradients/"
FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"
STATE = (PARAMETER, BUFFER)
# Optimizer -> tensors like the parameter that it keeps, passes over such tensors, and how many it
# makes meanwhile: it reads the parameter, the gradient and what it keeps, and writes all but the
# gradient.
OPTIMIZERS = {"sgd": (0, 3, 0), "momentum": (1, 5, 0), "rmsprop": (1, 5, 1), "adam": (2, 7, 2)}


@dataclass(frozen=True)
class Op:
    """One op of a step.

    Attributes:
        name: unique; begins with the path of the op's module, a backward op's with `gradients/`
            and the name of its forward op.
        type: such as `convolution`; of what is no ATen op, `parameter`, `input`, `adam`, ….
        phase: `parameter`, `buffer`, `constant`, `input`, `forward`, `backward` or `update`.
        path: of the module, "" for the model itself; None for the loss and for inputs. A parameter
            has that of its owner.
        inputs: (op, port) of each tensor read, by number of the op.
        output_bytes: by port.
        flops: floating-point operations.
        moved_bytes: bytes read and written.
        param_bytes: bytes that the op keeps from step to step.
        temp_bytes: bytes that it needs while it runs; known of updates alone.
        becomes: of a buffer that the step changes, (op, port) of what it is afterwards.
        microbatch, copy_of: see `ComputationGraph`.
    """

    name: str
    type: str
    phase: str
    path: str | None
    inputs: tuple[tuple[int, int], ...] = ()
    output_bytes: tuple[int, ...] = ()
    flops: float = 0.0
    moved_bytes: float = 0.0
    param_bytes: int = 0
    temp_bytes: int = 0
    becomes: tuple[int, int] | None = None
    microbatch: int = -1
    copy_of: int = -1

    @property
    def forward_name(self) -> str:
        """The name of a backward op without its own part: `gradients/` and its forward op."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, eq=False)
class Listed:
    """The ops of a step in topological order.

    Attributes:
        ops: each one.
        nodes: of each op the node that it is; None for the update of a parameter.
        narrow: types of those that compute in less than 32 bits.
        called_once: paths of the modules that are.
    """

    ops: list[Op]
    nodes: list[fx.Node | None]
    narrow: list[str]
    called_once: list[str]


def list_ops(captured: Captured, names: Mapping[str, Sequence[str]], optimizer: str) -> Listed:
    """The ops of a step in topological order.

    What a step does not need for its results, gradients and buffers is left out. A view of a whole
    tensor is no op: whoever reads it reads the tensor.

    Args:
        captured: the graph.
        names: parameter or buffer -> every name that it has in the module, the first one its own.
        optimizer: of `OPTIMIZERS`; each parameter with a gradient gets one op that updates it.
    """
    reader = _Reader(captured, names)
    for node in _needed(captured.graph):
        reader.add(node)
    for buffer, node in captured.buffers.items():
        number = reader.states[names[buffer][0]]
        reader.ops[number] = replace(reader.ops[number], becomes=reader.source(node))
    kept, passes, made = OPTIMIZERS[optimizer]
    # An optimizer begins when all gradients are there. Of the op that makes the last of them it
    # reads nothing: there is no such port.
    last = max(
        (reader.source(each) or (-1, 0) for each in captured.gradients.values()), default=None
    )
    through = () if last is None else ((last[0], len(reader.ops[last[0]].output_bytes)),)
    for parameter, gradient in captured.gradients.items():
        number = reader.states[names[parameter][0]]
        state = reader.ops[number]
        update = Op(
            name=f"{state.name}/{optimizer}",
            type=optimizer,
            phase=UPDATE,
            path=state.path,
            inputs=((number, 0), *reader.sources_of([gradient]), *through),
            moved_bytes=passes * state.param_bytes,
            param_bytes=kept * state.param_bytes,
            temp_bytes=made * state.param_bytes,
        )
        reader.ops.append(update)
    calls = {call for node in captured.graph.nodes for call in _calls(node)}
    once = {path for path, _ in calls if path} - {path for path, again in calls if again}
    node_of = {number: node for node, number in reversed(reader.number.items())}
    nodes = [node_of.get(number) for number in range(len(reader.ops))]
    return Listed(reader.ops, nodes, sorted(reader.narrow), sorted(once))


def with_cache(listed: Listed, tokens: int, where: str) -> Listed:
    """The ops of an inference that keeps the keys and values of so many tokens of each sequence.

    They are memory of `scaled_dot_product_attention`, in the type that it is given; keys that it is
    given once for several heads are kept once. What it computes stays what it is.

    Raises:
        PlacetoError: there is no such op.
    """
    ops = [
        replace(op, param_bytes=tokens * work.bytes_of_a_token(node))
        if node is not None and work.is_attention(node)
        else op
        for op, node in zip(listed.ops, listed.nodes, strict=True)
    ]
    if ops == listed.ops:
        raise PlacetoError(
            f"{where}: cache={tokens}: there is no scaled_dot_product_attention, whose keys and "
            "values would be kept"
        )
    return replace(listed, ops=ops)


class _Reader:
    """Turns nodes into ops, one after the other."""

    def __init__(self, captured: Captured, names: Mapping[str, Sequence[str]]) -> None:
        placeholders = [node for node in captured.graph.nodes if node.op == "placeholder"]
        # The joint graph has one placeholder more, for the gradient of the loss.
        self.sources = dict(zip(placeholders, captured.sources, strict=False))
        self.names = names
        self.ops: list[Op] = []
        self.states: dict[str, int] = {}
        self.narrow: set[str] = set()
        self.number: dict[fx.Node, int] = {}
        self.forward: dict[int, str] = {}
        for node in captured.graph.nodes:
            if node.op == "call_function" and not _is_backward(node):
                self.forward.setdefault(node.meta.get("seq_nr", -1), self._forward_name(node))

    def _forward_name(self, node: fx.Node) -> str:
        path = _path(node)
        name = f"{'loss' if path is None else path}/{node.name}" if path != "" else node.name
        # An op of the model itself may be called like one of its parameters, which keep their name.
        return f"{name}/op" if name in self.names else name

    def add(self, node: fx.Node) -> None:
        """Appends the op of a node, if it is one."""
        if node.op == "placeholder":
            if node in self.sources:
                self.number[node] = self._source_op(node)
        elif node.op != "output" and node.target is not operator.getitem:
            if work.is_whole_view(node) and self.source(node) is not None:
                return
            self.number[node] = len(self.ops)
            self.ops.append(self._op(node))

    def source(self, node: fx.Node) -> tuple[int, int] | None:
        """(op, port) of what a node yields; None for the gradient of the loss, which is no op."""
        port = 0
        while node not in self.number:
            if not node.all_input_nodes:
                return None
            if node.target is operator.getitem:
                port = int(str(node.args[1]))
            node = node.all_input_nodes[0]
        return self.number[node], port

    def sources_of(self, nodes: Iterable[fx.Node]) -> tuple[tuple[int, int], ...]:
        """(op, port) of what nodes yield, each once."""
        made = map(self.source, nodes)
        return tuple(dict.fromkeys(each for each in made if each is not None))

    def _source_op(self, node: fx.Node) -> int:
        kind, name = self.sources[node]
        size = work.tensor_bytes(node.meta["val"])
        if kind not in STATE:
            self.ops.append(Op(name, kind, kind, None, output_bytes=(size,)))
            return len(self.ops) - 1
        own = self.names[name][0]
        if own not in self.states:
            self.states[own] = len(self.ops)
            path = own.rpartition(".")[0]
            self.ops.append(Op(own, kind, kind, path, output_bytes=(size,), param_bytes=size))
        return self.states[own]

    def _op(self, node: fx.Node) -> Op:
        tensors = work.outputs(node)
        flops = work.flops(node)
        narrow = (t for t in tensors if t is not None and t.element_size() < 4)
        if flops and any(tensor.dtype.is_floating_point for tensor in narrow):
            self.narrow.add(work.op_type(node))
        backward = _is_backward(node)
        inputs = self.sources_of(node.all_input_nodes)
        path, name = _path(node), self._forward_name(node)
        if backward and "fwd_nn_module_stack" in node.meta:
            # There is no forward op of what changes a part of a tensor in place.
            forward = self.forward.get(node.meta.get("seq_nr", -1), name)
            name = f"{GRADIENTS}{forward}/{node.name}"
        elif backward:
            # A sum of gradients has no forward op, and goes with the last that it sums up: that of
            # the first module that read the tensor, while others came back through those behind.
            last = max((source for source, _ in inputs), default=None)
            summed = Op(f"{GRADIENTS}loss/", "", "", None) if last is None else self.ops[last]
            path, name = summed.path, f"{summed.forward_name}/{node.name}"
        return Op(
            name=name,
            type=work.op_type(node),
            phase=BACKWARD if backward else FORWARD,
            path=path,
            inputs=inputs,
            output_bytes=tuple(map(work.tensor_bytes, tensors)),
            flops=flops,
            moved_bytes=work.moved_bytes(node),
        )


def _needed(graph: fx.Graph) -> list[fx.Node]:
    """Nodes that the output needs, and every placeholder, in the graph's order."""
    needed: set[fx.Node] = set()
    for node in reversed(list(graph.nodes)):
        if node.op in ("output", "placeholder") or node in needed:
            needed.add(node)
            needed.update(node.all_input_nodes)
    return [node for node in graph.nodes if node in needed]


def _is_backward(node: fx.Node) -> bool:
    return node.meta.get("partitioner_tag") == "is_backward"


def _path(node: fx.Node) -> str | None:
    return next((path for path, _ in reversed(_calls(node))), None)


def _calls(node: fx.Node) -> list[tuple[str | None, bool]]:
    """The modules that are being called at a node, outermost first.

    Of each the path, None of what is around the model, and whether it was called before.
    """
    stack: Mapping[str, Any] = (
        node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    )
    found: list[tuple[str | None, bool]] = []
    for path, _ in stack.values():
        # A second call of a module is marked: `layer@1`.
        parts = [part.partition("@") for part in str(path).split(".")]
        names = [name for name, _, _ in parts]
        inside = names[0] == "model"
        found.append((".".join(names[1:]) if inside else None, any(mark for _, mark, _ in parts)))
    return found
