"""TensorBoard events, where tensorboardX is installed."""

import contextlib
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
        from tensorboardX import SummaryWriter
    except ImportError:
        yield lambda step, scalars: None
        return
    with SummaryWriter(str(directory), purge_step=first, filename_suffix=f".{first}") as writer:

        def log(step: int, scalars: Mapping[str, float]) -> None:
            for tag, value in scalars.items():
                writer.add_scalar(tag, value, step)
            writer.flush()

        yield log
