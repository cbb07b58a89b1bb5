"""Running a placed GraphDef in a session, and timing its steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from placeto.measurement.inputs import with_inputs
from placeto.measurement.measured import Measurement
from placeto.placement.placed_graph import add_control_edges
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorflow.core.framework.graph_pb2 import GraphDef

    from placeto.measurement.effort import Effort

_LEAST_FOR_95_PERCENT = 6


def as_placed(config: Any) -> Any:
    """The session's configuration with everything off that would change the graph."""
    options = config.graph_options
    options.rewrite_options.disable_meta_optimizer = True
    options.optimizer_options.opt_level = options.optimizer_options.L0
    options.optimizer_options.do_common_subexpression_elimination = False
    options.optimizer_options.do_constant_folding = False
    options.optimizer_options.do_function_inlining = False
    config.allow_soft_placement = False
    return config


def run_steps(
    graph_def: GraphDef,
    control: Iterable[tuple[str, str]],
    roots: Sequence[str],
    initializer: str,
    effort: Effort,
    target: str,
    config: Any,
    num_traces: int,
    say: Progress,
) -> tuple[list[float], list[bytes]]:
    """Initializes the variables and times steps.

    Only the ops behind fetches are run, so that no result is sent to this process.

    Args:
        graph_def: with a device on every op; its placeholders are replaced, and then
        control: edges added; see `add_control_edges`.
        roots: fetches and targets.
        initializer: the op that sets all variables.
        effort: how many steps.
        target: of the session: "" for this process, or a worker's address.
        config: the session's ConfigProto.
        num_traces: how many further steps to trace.
        say: called with what is being done.

    Returns:
        Seconds of the steps that count, and the serialized RunMetadata of those traced.

    Raises:
        tensorflow.errors.OpError: the placement cannot run.
    """
    import tensorflow as tf

    initializers = [initializer, *with_inputs(graph_def)]
    add_control_edges(graph_def, control)
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(target, config=as_placed(config)) as session:
            say("setting the variables")
            session.run([graph.get_operation_by_name(name) for name in initializers])
            operations = {name.split(":")[0]: None for name in roots}
            wanted = [graph.get_operation_by_name(name) for name in operations]
            step = session.make_callable(wanted)
            say("running its first steps")
            for _ in range(effort.warm_up):
                step()
            say("running its steps")
            samples: list[float] = []
            while not _enough(samples, effort):
                begin = time.perf_counter()
                step()
                samples.append(time.perf_counter() - begin)
            say("tracing steps")
            return samples, [_traced(session, wanted) for _ in range(num_traces)]


def _enough(samples: Sequence[float], effort: Effort) -> bool:
    if len(samples) < effort.steps:
        return False
    if effort.precision == float("inf") or len(samples) >= effort.max_steps:
        return True
    if len(samples) < _LEAST_FOR_95_PERCENT:
        return False
    measured = Measurement(tuple(samples))
    low, high = measured.interval
    widest = max(high - measured.step_time, measured.step_time - low)
    return widest <= effort.precision * measured.step_time


def _traced(session: Any, wanted: Sequence[Any]) -> bytes:
    import tensorflow as tf

    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    metadata = tf.compat.v1.RunMetadata()
    session.run(wanted, options=options, run_metadata=metadata)
    return bytes(metadata.SerializeToString())
