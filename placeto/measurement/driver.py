"""The driver: the process that holds the session, started by `Runtime`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from placeto.measurement.confine import limit_memory, pin, process_config
from placeto.measurement.effort import Effort
from placeto.measurement.parent import Parent
from placeto.measurement.steps import run_steps
from placeto.placement.placed_graph import placed_graph_def
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

_LINE_LENGTH = 300
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
    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    tf.compat.v1.disable_eager_execution()
    settings["target"] = parent.receive()["target"]
    limit_memory(settings["memory_bytes"])
    parent.send({"ready": True})
    graph_defs: dict[str, GraphDef] = {}
    while True:
        request = parent.receive()
        try:
            samples, traces = _measure(request, settings, graph_defs, parent)
        except PlacetoError as error:
            parent.send({"refused": str(error)})
        except (tf.errors.OpError, ValueError) as error:
            message = error.message if isinstance(error, tf.errors.OpError) else str(error)
            exhausted = isinstance(error, tf.errors.ResourceExhaustedError)
            parent.send({"failed": one_line(message), "exhausted": exhausted})
        else:
            parent.send({"samples": samples, "traces": len(traces)}, *traces)


def _measure(
    request: dict[str, Any],
    settings: dict[str, Any],
    graph_defs: dict[str, GraphDef],
    parent: Parent,
) -> tuple[list[float], list[bytes]]:
    import tensorflow as tf

    key = request["sha256"]
    if key not in graph_defs:
        graph_defs.clear()
        graph_defs[key] = tf.compat.v1.GraphDef.FromString(read_bytes(request["path"]))
    devices = {name: request["devices"][number] for name, number in request["ops"].items()}
    target = settings["target"]
    if target:
        # Variables live on in the workers after their session, and so does the session of a
        # driver that was killed.
        tf.compat.v1.Session.reset(target)
    return run_steps(
        placed_graph_def(graph_defs[key], devices),
        request["control"],
        request["roots"],
        request["initializer"],
        Effort(**request["effort"]),
        target,
        process_config(
            settings["num_cores"], settings["num_cpu_devices"], settings["serving_threads"]
        ),
        request["traces"],
        lambda stage: parent.send({"stage": stage}),
    )


def one_line(message: str) -> str:
    """What an error's message says first, without where it was met."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if not _HEADING.match(line)]
    line = (telling or lines or ["no reason given"])[0]
    return line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}…"


if __name__ == "__main__":
    main()
