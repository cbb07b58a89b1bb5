"""A worker: one task of a TensorFlow cluster on this machine, started by `Runtime`."""

import sys
from typing import Any

from placeto.measurement.confine import limit_memory, pin, process_config
from placeto.measurement.loopback import free_port, keep_to_loopback
from placeto.measurement.parent import Parent
from placeto.support.errors import PlacetoError


def main() -> None:
    """Serves until the parent ends."""
    parent = Parent(sys.argv[1:])
    settings = parent.receive()
    pin(settings["cores"])
    import tensorflow  # noqa: F401 (before a port is chosen, so that it is not free for long)

    parent.send({"port": free_port()})
    try:
        server = serve(settings, parent.receive()["cluster"])
    except PlacetoError as error:
        parent.send({"error": str(error)})
    else:
        limit_memory(settings["memory_bytes"])
        parent.send({"target": server.target})
    parent.receive()


def serve(settings: dict[str, Any], cluster: dict[str, list[str]]) -> Any:
    """A `tf.distribute.Server` that can be reached from this machine only.

    Args:
        settings: of the task: those of `Task.settings`, and its `job` and `task`.
        cluster: addresses of all tasks, by job.

    Raises:
        PlacetoError: the port cannot be had, or not be kept to the loopback interface.
    """
    import tensorflow as tf

    job, task = settings["job"], settings["task"]
    port = int(cluster[job][task].rpartition(":")[2])
    config = process_config(
        settings["num_cores"], settings["num_cpu_devices"], settings["serving_threads"]
    )
    try:
        server = tf.distribute.Server(cluster, job_name=job, task_index=task, config=config)
    except tf.errors.OpError as error:
        reason = error.message.splitlines()[0]
        raise PlacetoError(f"cannot serve on port {port}: {reason}; is it in use?") from error
    keep_to_loopback(port)
    return server


if __name__ == "__main__":
    main()
