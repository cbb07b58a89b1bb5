"""What ops cost whose work is a function: loops, branches, calls that were not inlined.

Loops keep what their gradients need in tensor lists, into which Grappler's shape inference does not
look. Inside of a function the shape of an element is known from the op that made the list outside.
"""

from collections.abc import Mapping, Set

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph_def

from placeto.extraction.grappler import optimized
from placeto.extraction.op_kinds import BRANCHES, LOOPS
from placeto.extraction.result import some
from placeto.extraction.step import TrainingStep, op_and_port, op_of
from placeto.extraction.work import measure_work, output_properties
from placeto.support.errors import PlacetoError

_SAME_ELEMENTS = ("Identity", "TensorListPopBack", "TensorListPushBack", "TensorListSetItem")
_ELEMENT_PORT = {"TensorListPopBack": 1, "TensorListGetItem": 0}


def functional_work(step: TrainingStep) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """The work inside of ops that run functions.

    A loop costs its body times its iterations, where their largest number is a constant (as
    Keras' recurrent layers have it), and its body once where not. A branch costs its dearest side.

    Args:
        step: an optimized training step.

    Returns:
        op -> (FLOPs, bytes moved), and one warning per type of such ops.
    """
    library = {function.signature.name for function in step.graph_def.library.function}
    calls = {node.name: _called(node, library) for node in step.graph_def.node} if library else {}
    if not any(calls.values()):
        return {}, []
    caller = _Caller(step)
    work = {}
    whole: dict[str, list[str]] = {}
    for name, functions in calls.items():
        if not functions:
            continue
        node = caller.nodes[name]
        inputs = [tensor for tensor in node.input if not tensor.startswith("^")]
        if node.op in BRANCHES:
            inputs = inputs[1:]
        sides = [caller.function_work(each, inputs) for each in functions]
        flops, moved = max(sides, key=lambda side: side[1])
        count = caller.iterations(node) if node.op in LOOPS else 1
        work[name] = (flops * (count or 1), moved * (count or 1))
        how = "" if count else ", iterations unknown and counted as one"
        whole.setdefault(f"{node.op} placed as a whole{how}", []).append(name)
    return work, [f"{len(names)} {what}: {some(names)}" for what, names in whole.items()]


def _called(node: NodeDef, library: Set[str]) -> list[str]:
    called = [node.op] if node.op in library else []
    for key in sorted(node.attr):
        attr = node.attr[key]
        called += [each.name for each in (attr.func, *attr.list.func) if each.name in library]
    return called


class _Caller:
    """A graph whose ops call functions, and what is known of the tensors that they pass."""

    def __init__(self, step: TrainingStep) -> None:
        self.library = step.graph_def.library
        self.nodes: dict[str, NodeDef] = {node.name: node for node in step.graph_def.node}
        self.properties = output_properties(step)

    def iterations(self, loop: NodeDef) -> int | None:
        """How often a loop runs at most, if that is a constant."""
        # tf.while_loop passes its counter first and maximum_iterations second, -1 for no limit.
        limit = self.nodes[op_of(loop.input[1])] if len(loop.input) > 1 else loop
        if limit.op != "Const":
            return None
        value = tf.make_ndarray(limit.attr["value"].tensor)
        return int(value) if value.size == 1 and value.dtype.kind == "i" and value > 0 else None

    def function_work(self, name: str, inputs: list[str]) -> tuple[float, float]:
        """FLOPs and bytes moved of one call of a function with these tensors."""
        function = next(each for each in self.library.function if each.signature.name == name)
        body, flat_names = function_def_to_graph_def(function)
        body.library.CopyFrom(self.library)
        names = [each.name for each in function.signature.input_arg]
        if len(names) != len(inputs):
            raise PlacetoError(
                f"{name}: is called with other inputs than its op has, such as elements "
                "of a dataset; pass what the dataset yields as an argument"
            )
        given = dict(zip(names, inputs, strict=True))
        for node in body.node:
            if node.name in given:
                self._give(node, given[node.name])
        self._show_elements(body, given)
        results = (flat_names.get(each, each) for each in function.ret.values())
        fetches = tuple(each for each in results if op_of(each) not in given)
        targets = tuple(op_of(each) for each in function.control_ret.values())
        if not fetches and not targets:
            return 0.0, 0.0
        step = optimized(TrainingStep(name, body, fetches, targets))
        work = measure_work(step)
        nested = functional_work(step)[0].values()
        return (
            float(work.flops.sum()) + sum(flops for flops, _ in nested),
            float(work.moved_bytes.sum()) + sum(moved for _, moved in nested),
        )

    def _give(self, argument: NodeDef, tensor: str) -> None:
        """Makes an argument yield what it is: the same variable, or a like tensor from nowhere."""
        name = argument.name
        op, port = op_and_port(tensor)
        if self.nodes[op].op == "VarHandleOp":
            argument.CopyFrom(self.nodes[op])
            argument.name = name
        else:
            output = self.properties[op][port]
            argument.CopyFrom(_from_nowhere(name, output.dtype, output.shape))

    def _show_elements(self, body: GraphDef, arguments: Mapping[str, str]) -> None:
        """Gives those who use an element of a list one of known shape, so that their cost is known.

        The function can be analysed afterwards, but not run. Arguments stand for tensors outside.
        """
        inside = {node.name: node for node in body.node}
        known = {}
        for node in list(body.node):
            if node.op not in _ELEMENT_PORT:
                continue
            source = op_of(node.input[0])
            while source not in arguments and inside[source].op in _SAME_ELEMENTS:
                source = op_of(inside[source].input[0])
            sizes = self._element_shape(arguments.get(source, ""))
            if sizes is None or min(sizes, default=0) < 0:
                continue
            shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])
            element = _from_nowhere(f"{node.name}/element", node.attr["element_dtype"].type, shape)
            body.node.append(element)
            port = _ELEMENT_PORT[node.op]
            known[f"{node.name}:{port}"] = element.name
            if port == 0:
                known[node.name] = element.name
        for node in body.node:
            node.input[:] = [known.get(tensor, tensor) for tensor in node.input]

    def _element_shape(self, tensor: str) -> list[int] | None:
        op, port = op_and_port(tensor)
        while op in self.nodes and self.nodes[op].op in LOOPS:
            op, port = op_and_port(self.nodes[op].input[port])
        if op not in self.nodes:
            return None
        origin = self.nodes[op]
        if origin.op == "TensorListFromTensor":
            source, port = op_and_port(origin.input[0])
            whole = self.properties[source][port].shape
            return None if whole.unknown_rank else [dim.size for dim in whole.dim[1:]]
        if origin.op not in ("EmptyTensorList", "TensorListReserve"):
            return None
        shape = self.nodes[op_of(origin.input[0])]
        if shape.op != "Const":
            return None
        value = tf.make_ndarray(shape.attr["value"].tensor)
        return None if value.ndim != 1 else [int(size) for size in value]


def _from_nowhere(name: str, dtype: int, shape: TensorShapeProto) -> NodeDef:
    node = NodeDef(name=name, op="InfeedDequeue")
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.CopyFrom(shape)
    return node
