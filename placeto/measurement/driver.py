"""The driver: the process that holds the session and times steps, started by `Runtime`."""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from placeto.measurement.inputs import with_inputs
from placeto.measurement.measured import Effort
from placeto.measurement.pace import Pace, calmest, slowest, unevenness
from placeto.measurement.parent import Parent
from placeto.measurement.tasks import import_core, limit_memory, pin, process_config
from placeto.placement.placed_graph import add_control_edges, placed_graph_def
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.config_pb2 import RunMetadata

_LINE_LENGTH = 300
_TRACES = 3
T = TypeVar("T")
# Lines of an error's message that say where it was met, or how many errors were, before those that
# say what. Errors met together are numbered, or stand between two rules.
_HEADING = re.compile(
    r"=+$|\d+ root error|(\(\d+\) )?([A-Z_]+: )?"
    r"(From /job:|Graph execution error|Detected at node|Node:|File \")"
)


def main() -> None:
    """Measures one placement after another until the parent ends."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    pin(settings["cores"])
    import_core()
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.python.client.session import Session
    from tensorflow.python.framework import errors, ops
    from tensorflow.python.platform import tf_logging

    tf_logging.set_verbosity(tf_logging.ERROR)
    ops.disable_eager_execution()
    target = parent.receive()["target"]
    limit_memory(settings["memory_bytes"])
    parent.send({"ready": True})
    graph_defs: dict[str, GraphDef] = {}
    while True:
        request = parent.receive()
        try:
            wanted = {each["sha256"]: each["path"] for each in request["placements"]}
            # There may be no memory for more than these.
            graph_defs = {key: graph_defs[key] for key in graph_defs if key in wanted}
            for key, path in wanted.items():
                if key not in graph_defs:
                    graph_defs[key] = GraphDef.FromString(read_bytes(path))
            placed = [
                placed_graph_def(
                    graph_defs[each["sha256"]],
                    {op: request["devices"][number] for op, number in each["ops"].items()},
                )
                for each in request["placements"]
            ]
            if target:
                # Variables live on in the workers after their session, and so does the session of a
                # driver that was killed.
                Session.reset(target)
            least = {int(core): seconds for core, seconds in request["least"].items()}
            samples, paces, traces = run_steps(
                placed,
                request,
                target,
                process_config(settings),
                Pace(request["cores"], least),
                lambda stage: parent.send({"stage": stage}),
            )
        except PlacetoError as error:
            parent.send({"refused": str(error)})
        except (errors.OpError, ValueError) as error:
            message = error.message if isinstance(error, errors.OpError) else str(error)
            exhausted = isinstance(error, errors.ResourceExhaustedError)
            parent.send({"failed": one_line(message), "exhausted": exhausted})
        else:
            found = {"samples": samples, "paces": paces, "least": least}
            parent.send({**found, "traces": len(traces)}, *traces)


def run_steps(
    graph_defs: Sequence[GraphDef],
    request: dict[str, Any],
    target: str,
    config: Any,
    pace: Callable[[], list[float]],
    say: Progress,
) -> tuple[list[list[float]], list[float], list[bytes]]:
    """Initializes the variables and times steps, those of several placements in turn.

    Only the ops behind fetches are run, so that no result is sent to this process. Placements of a
    graph that have a variable on the same device share it.

    Args:
        graph_defs: with a device on every op; their placeholders are replaced.
        request: `placements`, of each `sha256` of its GraphDef, `control`, edges to add, see
            `add_control_edges`, `roots`, fetches and targets, and `initializer`, the op that sets
            all variables; `effort`, as a dictionary; `traces`, how many further steps of the last
            placement to trace; `at_once`, whether steps of all are run and traced at once, too.
        target: of the session: "" for this process, or a worker's address.
        config: the session's ConfigProto; what would change the graph is put out.
        pace: of the cores that the steps run on; see `calmest`.
        say: called with what is being done.

    Returns:
        Of each turn that counts the seconds of each placement's step, and then of each one's at
        once; how disturbed each turn was; and the serialized RunMetadata of the steps traced, of
        one placement after the other.

    Raises:
        tensorflow.errors.OpError: a placement cannot run.
    """
    from tensorflow.core.protobuf.config_pb2 import RunOptions

    options = config.graph_options
    options.rewrite_options.disable_meta_optimizer = True
    options.optimizer_options.opt_level = options.optimizer_options.L0
    options.optimizer_options.do_common_subexpression_elimination = False
    options.optimizer_options.do_constant_folding = False
    options.optimizer_options.do_function_inlining = False
    config.allow_soft_placement = False
    effort, many = Effort(**request["effort"]), len(graph_defs) > 1
    full = RunOptions(trace_level=RunOptions.FULL_TRACE)
    with ExitStack() as stack:
        say("setting the variables")
        steps = [
            _Steps(stack, graph_def, placement, target, config)
            for graph_def, placement in zip(graph_defs, request["placements"], strict=True)
        ]
        say("running its first steps")
        for each in steps:
            check_done(partial(each.traced, full), each.names)
            for _ in range(effort.warm_up):
                each.run()
        say("running its steps")

        def turn() -> list[float]:
            return [each.timed() for each in steps]

        def turn_and_at_once() -> list[float]:
            alone = turn()
            return [*alone, *at_once([each.timed for each in steps], 1, max(alone))[0]]

        samples, paces = calmest(
            turn_and_at_once if request["at_once"] else turn,
            pace,
            lambda turns: bool(turns) and all(map(effort.is_met, zip(*turns, strict=True))),
            effort.patience_seconds,
            unevenness if many else slowest,
        )
        say("tracing steps")
        if request["at_once"]:
            seconds = max(samples[-1][: len(steps)])
            calls = [partial(each.traced, full) for each in steps]
            rows = at_once(calls, request["traces"], seconds)
            metadata = chain(*zip(*rows, strict=True))
            return samples, paces, [each.SerializeToString() for each in metadata]
        traces, _ = calmest(
            lambda: steps[-1].traced(full).SerializeToString(),
            pace,
            lambda traced: len(traced) >= request["traces"],
            effort.patience_seconds,
        )
        return samples, paces, traces


class _Steps:
    """The steps of one placement, in a session of its own."""

    def __init__(
        self,
        stack: ExitStack,
        graph_def: GraphDef,
        placement: Mapping[str, Any],
        target: str,
        config: Any,
    ) -> None:
        from tensorflow.python.client.session import Session
        from tensorflow.python.framework.importer import import_graph_def
        from tensorflow.python.framework.ops import Graph

        initializers = [placement["initializer"], *with_inputs(graph_def)]
        for node in graph_def.node:
            if node.op == "VarHandleOp":
                name = node.attr["shared_name"].s.decode() or node.name
                node.attr["shared_name"].s = f"{placement['sha256']}/{name}".encode()
        add_control_edges(graph_def, placement["control"])
        graph = Graph()
        with graph.as_default():
            import_graph_def(graph_def, name="")
        self._session = stack.enter_context(closing(Session(target, graph, config)))
        self._session.run([graph.get_operation_by_name(name) for name in initializers])
        self.names = list(dict.fromkeys(name.split(":")[0] for name in placement["roots"]))
        self._wanted = [graph.get_operation_by_name(name) for name in self.names]
        self.run = self._session.make_callable(self._wanted)

    def timed(self) -> float:
        """Seconds of a step."""
        begin = time.perf_counter()
        self.run()
        return time.perf_counter() - begin

    def traced(self, options: Any) -> RunMetadata:
        """What a step tells that is traced."""
        from tensorflow.core.protobuf.config_pb2 import RunMetadata

        metadata = RunMetadata()
        self._session.run(self._wanted, options=options, run_metadata=metadata)
        return metadata


def at_once(each: Sequence[Callable[[], T]], count: int, seconds: float) -> list[list[T]]:
    """Calls several things over and over, all at once, until each has been called so often.

    A call takes about so many seconds, over which the beginnings of the first are spread: the same
    steps, begun at one instant, would go side by side, op by op. These first calls do not count.

    Returns:
        (count, len(each)) results of the next calls; all others went on meanwhile.
    """
    found: list[list[T]] = [[] for _ in each]
    failed = Event()

    def work(number: int, call: Callable[[], T], results: list[T]) -> None:
        failed.wait(number * seconds / len(each))
        try:
            while not failed.is_set() and any(len(other) <= count for other in found):
                results.append(call())
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(len(each)) as pool:
        pairs = enumerate(zip(each, found, strict=True))
        jobs = [pool.submit(work, number, *pair) for number, pair in pairs]
        for job in jobs:
            job.result()
    return [list(row) for row in zip(*(results[1 : count + 1] for results in found), strict=True)]


def check_done(trace: Callable[[], RunMetadata], names: Collection[str]) -> None:
    """Raises `ValueError` if steps are done without some of these ops.

    An executor that finds no op ready ends the step without a word. A trace lacks what a worker
    told too late, now and then: an op is missed when `_TRACES` lack it.
    """
    missing = set(names)
    for _ in range(_TRACES):
        nodes = (node for each in trace().step_stats.dev_stats for node in each.node_stats)
        missing -= {node.node_name.partition(":")[0] for node in nodes}
        if not missing:
            return
    raise ValueError(
        f"{len(missing)} of {len(names)} results of a step were never computed, such as "
        f"{min(missing)!r}: the runtime's own changes of the graph, and its order, close a cycle"
    )


def one_line(message: str) -> str:
    """What an error's message says first, without where it was met."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if not _HEADING.match(line)]
    line = (telling or lines or ["no reason given"])[0]
    return line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}…"


if __name__ == "__main__":
    main()
