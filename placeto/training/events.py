"""TensorBoard events, where tensorboard is installed.

Records are written with tensorboard's own classes: torch's `SummaryWriter` loads all of TensorFlow
where that is installed too.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Log = Callable[[int, Mapping[str, float]], None]


@contextlib.contextmanager
def event_log(directory: Path, first: int) -> Iterator[Log]:
    """Yields what scalars are logged with: a step's number, and values by tag.

    Args:
        directory: where a file of events is made, beside those of earlier parts of the run.
        first: the first step to come; what earlier files say of it and of later ones is void.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        yield lambda step, scalars: None
        return
    path = directory / f"events.out.tfevents.{time.time():.6f}.{os.getpid()}"
    with path.open("xb") as file:
        records = RecordWriter(file)

        def write(**fields: object) -> None:
            records.write(Event(wall_time=time.time(), **fields).SerializeToString())
            file.flush()

        def log(step: int, scalars: Mapping[str, float]) -> None:
            values = [Summary.Value(tag=tag, simple_value=scalars[tag]) for tag in scalars]
            write(step=step, summary=Summary(value=values))

        write(file_version="brain.Event:2")
        write(step=first, session_log=SessionLog(status=SessionLog.START))
        yield log
