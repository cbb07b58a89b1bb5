"""Processes that extract members of a family, each for itself and on one core; also with Ray.

Here, such a process is `python -m placeto.extraction.workers`. It reads a JSON object with `source`
and `path` from each line of stdin, and answers each with a line on stdout: an empty object, or one
with an `error`. It ends with its input.
"""

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import placeto
from placeto.extraction.extract import extract
from placeto.support.crew import Crew
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, write_bytes
from placeto.support.ray_session import ray_session
from placeto.zoo.families import Member
from placeto.zoo.folders import graph_path

# TensorFlow would start as many threads as there are cores in each process: two processes on
# two cores then take five times as long.
ONE_THREAD = dict.fromkeys(
    ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1"
)
# What an extraction leaves: the bytes of files, by name; the graph file is the last.
Files = dict[str, bytes]
_LONGEST_LINE = 300
MODULE = "placeto.extraction.workers"


def extract_members(
    members: Sequence[Member], folder: Path, workers: int, made: Callable[[Member], None]
) -> None:
    """Extracts members, none of a synthetic family, into a folder.

    There are at most as many workers as members. On any error and on Ctrl-C they are ended at once,
    and what they were at leaves nothing. `made` is called with each member whose files are there.

    Raises:
        PlacetoError: a member cannot be extracted or written, or a worker ended.
    """
    waiting = deque(members)
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(workers):
            worker = stack.enter_context(closing(_Worker(folder)))
            selector.register(worker.answers, selectors.EVENT_READ, worker)
            worker.give(waiting.popleft())
        busy = workers
        while busy:
            for key, _ in selector.select():
                worker = key.data
                made(worker.finished())
                if waiting:
                    worker.give(waiting.popleft())
                else:
                    selector.unregister(worker.answers)
                    busy -= 1


class _Worker:
    """A process of `MODULE`: gets lines, answers with lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._member: Member | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        home = str(Path(placeto.__file__).resolve().parents[1])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            # -P: what lies in the working directory is not imported in a package's stead.
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
            # Ctrl-C reaches this process alone, which then ends the others.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self.answers = self._process.stdin, self._process.stdout

    def give(self, member: Member) -> None:
        """Hands over a member to extract."""
        self._member = member
        request = {"source": member.reference, "path": str(graph_path(self._folder, member))}
        # If the process is gone, that shows when it does not answer.
        with suppress(BrokenPipeError):
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()

    def finished(self) -> Member:
        """Waits until the member is extracted; raises why it cannot be."""
        assert self._member is not None
        line = self.answers.readline()
        if not line.endswith("\n"):
            raise PlacetoError(f"{self._member.reference}: {self._exit_reason()}")
        if error := json.loads(line).get("error"):
            raise PlacetoError(f"{self._member.reference}: {error}")
        member, self._member = self._member, None
        return member

    def close(self) -> None:
        """Ends the process at once; of a member that it was at, nothing is left."""
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self.answers, self._log):
            with suppress(BrokenPipeError):
                stream.close()
        if self._member is not None:
            for unfinished in self._folder.glob(f".{self._member.name}.*"):
                unfinished.unlink()

    def _exit_reason(self) -> str:
        status = self._process.wait()
        how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        telling = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception)\b", line)]
        said = f": {telling[-1][:_LONGEST_LINE]}" if telling else ""
        return f"the process that extracted it {how}{said}"


def extract_members_with_ray(
    members: Sequence[Member],
    folder: Path,
    workers: int,
    made: Callable[[Member], None],
    *,
    address: str | None,
) -> None:
    """Extracts members into a folder; its arguments are those of `extract_members`.

    A worker that dies is replaced, and its member extracted again. Only this process writes to the
    folder.

    Raises:
        PlacetoError: a member cannot be extracted or written, the cluster at `address` cannot be
            reached or is too small, workers die again and again.
    """
    with (
        ray_session(address, workers),
        Crew[Member, Files](extractor, [{"num_cpus": 1}] * workers) as crew,
    ):
        for number, files in crew.map(members):
            for name, content in files.items():
                write_bytes(folder / name, content)
            made(members[number])


def extractor(number: int) -> Callable[[Member], Files]:
    """What extracts members, in a worker that TensorFlow was not imported in yet."""
    os.environ.update(ONE_THREAD)
    return _extracted


def _extracted(member: Member) -> Files:
    with tempfile.TemporaryDirectory() as name:
        path = graph_path(Path(name), member)
        try:
            beside = extract(member.reference).save(path)
            files = [path] if beside is None else [beside, path]
            return {file.name: read_bytes(file) for file in files}
        except PlacetoError as error:
            raise PlacetoError(f"{member.reference}: {error}") from error


def main() -> None:
    """Works until there is no more input."""
    # What TensorFlow prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        try:
            extract(request["source"]).save(request["path"])
        except PlacetoError as error:
            answer["error"] = str(error)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
