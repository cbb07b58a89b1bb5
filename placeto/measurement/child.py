"""Child processes that answer over a pipe and never outlive their parent."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import placeto

_LINE_LENGTH = 300
# What the C++ runtime logs as fatal, and the last line of a Python traceback.
_ERROR = re.compile(r"F\d{4} |F\d{8} |\d{4}-.*: F |[A-Za-z_.]*(Error|Exception)\b")


class ChildError(Exception):
    """A child died or gave up; the message is one line."""


class ChildTimeout(ChildError):  # noqa: N818 (as TimeoutError is an error)
    """A child did not answer in time."""


class Child:
    """A Python module that runs as a process of its own.

    The process gets JSON objects over a pipe and answers with such, some followed by bytes. It
    has a session of its own, so that Ctrl-C reaches the parent alone, and ends when its parent
    does, by `placeto.measurement.parent`. What cannot be sent to it or received from it as it is
    gone is a `ChildError`.

    Args:
        name: what to call it in messages.
        module: what to run.
        settings: the first object that it gets.
        environment: variables to set.
    """

    def __init__(
        self,
        name: str,
        module: str,
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._pipe, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the child)
        with theirs:
            self.process = subprocess.Popen(
                # -P: what lies in the working directory is not imported in a package's stead.
                [sys.executable, "-P", "-m", module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=child_environment() | dict(environment or {}),
                start_new_session=True,
            )
        self._end = weakref.finalize(self, _end, self.process, self._pipe, self._log)
        self.send(settings)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends an object."""
        try:
            self._pipe.send_bytes(json.dumps(message).encode())
        except OSError as error:
            raise ChildError(self.exit_reason()) from error

    def poll(self, seconds: float) -> bool:
        """Waits until there is an answer or the process is gone; false if neither came to pass."""
        return self._pipe.poll(max(seconds, 0.0))

    def receive(self, seconds: float) -> dict[str, Any]:
        """Waits for an answer; `ChildTimeout` where none comes in time."""
        if not self.poll(seconds):
            raise ChildTimeout(f"{self.name} did not answer within {seconds:g} s")
        return dict(json.loads(self.receive_bytes()))

    def receive_bytes(self) -> bytes:
        """The bytes that follow an answer."""
        try:
            return self._pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise ChildError(self.exit_reason()) from error

    def exit_reason(self) -> str:
        """How the process ended, within seconds from now, and the last it said, in one line."""
        try:
            status = self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            return f"{self.name} no longer answers"
        if status >= 0:
            end = f"ended with status {status}"
        elif -status == signal.SIGKILL:
            end = "was killed (by hand, or for want of memory)"
        else:
            end = f"was ended by {signal.Signals(-status).name}"
        last = self._last_line()
        return f"{self.name} {end}{': ' if last else ''}{last}"

    def close(self) -> None:
        """Ends the process and waits for its end."""
        self._end()

    def _last_line(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(self._log.tell() - 20_000, 0))
        lines = self._log.read().decode(errors="replace").splitlines()
        # Of TensorFlow's own lines only those of errors; of others, that of a traceback.
        telling = [line for line in lines if _ERROR.match(line)]
        return telling[-1].split("] ", 1)[-1].strip()[:_LINE_LENGTH] if telling else ""


def child_environment() -> dict[str, str]:
    """The environment in which a child finds this very package."""
    home = str(Path(placeto.__file__).resolve().parents[1])
    paths = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "1"}


def wait_for_any(children: Iterable[Child], seconds: float) -> Child | None:
    """The first of some children to be gone within a time; None if all live on."""
    until = time.monotonic() + seconds
    while True:
        if gone := next((child for child in children if not child.alive), None):
            return gone
        if time.monotonic() >= until:
            return None
        time.sleep(0.01)


def _end(process: "subprocess.Popen[bytes]", pipe: "Connection[Any, Any]", log: IO[bytes]) -> None:
    process.kill()
    process.wait()
    pipe.close()
    log.close()
