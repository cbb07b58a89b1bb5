"""What ops cost whose work is a function: loops, branches, calls that were not inlined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.extraction.grappler import optimized
from placeto.extraction.shapes import output_properties
from placeto.extraction.step import TrainingStep, op_of
from placeto.extraction.tensor_lists import show_elements
from placeto.extraction.work import measure_work
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

_LOOPS = ("While", "StatelessWhile")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")  # their first input chooses


def functional_work(step: TrainingStep) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    """The work inside of ops that run functions.

    A loop costs its body times its iterations, where their largest number is a constant (as
    Keras' recurrent layers have it), and its body once where not. A branch costs its dearest side.

    Args:
        step: an optimized training step.

    Returns:
        op -> (FLOPs, bytes moved), and one warning per type of such ops.
    """
    graph_def = step.graph_def
    library = {function.signature.name for function in graph_def.library.function}
    calls = {node.name: _called(node, library) for node in graph_def.node} if library else {}
    calls = {name: functions for name, functions in calls.items() if functions}
    if not calls:
        return {}, ()
    nodes = {node.name: node for node in graph_def.node}
    properties = output_properties(step)
    work = {}
    whole: dict[str, list[str]] = {}
    for name, functions in calls.items():
        node = nodes[name]
        inputs = [tensor for tensor in node.input if not tensor.startswith("^")]
        if node.op in _BRANCHES:
            inputs = inputs[1:]
        sides = [_function_work(graph_def, each, inputs, properties) for each in functions]
        flops, moved = max(sides, key=lambda side: side[1])
        count = _iterations(node, nodes) if node.op in _LOOPS else 1
        work[name] = (flops * (count or 1), moved * (count or 1))
        how = "" if count else ", iterations unknown and counted as one"
        whole.setdefault(f"{node.op} placed as a whole{how}", []).append(name)
    warnings = (f"{len(names)} {what}: {_shown(names)}" for what, names in whole.items())
    return work, tuple(warnings)


def _shown(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


def _called(node: NodeDef, library: set[str]) -> list[str]:
    called = [node.op] if node.op in library else []
    for key in sorted(node.attr):
        attr = node.attr[key]
        called += [each.name for each in (attr.func, *attr.list.func) if each.name in library]
    return called


def _argument(tensor: str, nodes: dict[str, NodeDef], properties: dict[str, Any]) -> NodeDef:
    # An op that yields what the function is called with: the same variable, or a tensor of the
    # same shape from nowhere.
    from tensorflow.core.framework.node_def_pb2 import NodeDef

    op, _, port = tensor.partition(":")
    node = NodeDef()
    if nodes[op].op == "VarHandleOp":
        node.CopyFrom(nodes[op])
        return node
    output = properties[op][int(port or 0)]
    node.op = "InfeedDequeue"
    node.attr["dtype"].type = output.dtype
    node.attr["shape"].shape.CopyFrom(output.shape)
    return node


def _function_work(
    graph_def: GraphDef, name: str, inputs: list[str], properties: dict[str, Any]
) -> tuple[float, float]:
    from tensorflow.python.framework.function_def_to_graph import function_def_to_graph_def

    function = next(each for each in graph_def.library.function if each.signature.name == name)
    body, flat_names = function_def_to_graph_def(function)
    body.library.CopyFrom(graph_def.library)
    nodes = {node.name: node for node in graph_def.node}
    names = [each.name for each in function.signature.input_arg]
    if len(names) != len(inputs):
        raise PlacetoError(
            f"{name}: is called with other inputs than its op has, such as elements "
            "of a dataset; pass what the dataset yields as an argument"
        )
    given = dict(zip(names, inputs, strict=True))
    for node in body.node:
        if node.name in given:
            argument = _argument(given[node.name], nodes, properties)
            argument.name = node.name
            node.CopyFrom(argument)
    show_elements(body, given, nodes, properties)
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


def _iterations(node: NodeDef, nodes: dict[str, NodeDef]) -> int | None:
    import tensorflow as tf

    # tf.while_loop passes its counter first and maximum_iterations second, -1 for no limit.
    limit = nodes[op_of(node.input[1])] if len(node.input) > 1 else node
    if limit.op != "Const":
        return None
    value = tf.make_ndarray(limit.attr["value"].tensor)
    return int(value) if value.size == 1 and value.dtype.kind == "i" and value > 0 else None
