"""The other end of `Child`: what a child process is told, and its end with its parent's."""

import json
import os
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

_LOOK_SECONDS = 0.5


class Parent:
    """The process that started this one, by the pipe's file descriptor and its process id.

    From its construction on, this process ends within a second of its parent's end, however that
    came about. The parent's process id is looked at, as a pipe may be held open by others.
    """

    def __init__(self, arguments: list[str]) -> None:
        descriptor, process = map(int, arguments)
        self._pipe: Connection[Any, Any] = Connection(descriptor)
        threading.Thread(target=_end_with, args=(process,), daemon=True).start()

    def receive(self) -> dict[str, Any]:
        """Waits for an object; ends the process if the parent has closed the pipe."""
        try:
            return dict(json.loads(self._pipe.recv_bytes()))
        except (EOFError, ConnectionError):
            os._exit(0)  # TensorFlow has threads that an orderly end would wait for

    def asks(self) -> bool:
        """Whether there is an object to receive, or the parent has closed the pipe."""
        return self._pipe.poll()

    def send(self, message: dict[str, Any], *data: bytes) -> None:
        """Sends an object, and bytes after it if there are any; ends the process likewise."""
        try:
            for part in (json.dumps(message).encode(), *data):
                self._pipe.send_bytes(part)
        except ConnectionError:
            os._exit(0)


def _end_with(process: int) -> None:
    while os.getppid() == process:
        time.sleep(_LOOK_SECONDS)
    os._exit(0)
