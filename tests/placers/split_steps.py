"""Steps of two layers, split into microbatches, whose step times are worked out by hand."""

from dataclasses import replace

from placeto.extraction import Extraction
from tests.builders import make_graph

BATCH = 64
SOURCE = "zoo:split?batch=64&microbatches=auto"
WORK = 16.0  # seconds of a layer, for the whole batch


def split_step(source: str, fixed: float, held: int = 0, meta=None) -> Extraction:
    """Two layers; an op takes its part of `WORK` and `fixed` seconds, and holds its part of `held`.

    Nothing is sent, so that a pipeline of M microbatches on two devices takes
    (M + 1) (WORK / M + fixed) seconds.
    """
    count = int(source.partition("microbatches=")[2])
    names = [f"{part}/layer{layer}" for part in range(count) for layer in (0, 1)]
    pairs = zip(names[::2], names[1::2], strict=True)
    graph = make_graph(
        dict.fromkeys(names, WORK / count + fixed),
        [(first, 0, [second]) for first, second in pairs],
        temp_bytes=dict.fromkeys(names, held // count),
    )
    graph = replace(
        graph,
        microbatch=[part for part in range(count) for _ in (0, 1)] if count > 1 else None,
        copy_of=[-1, -1] + [0, 1] * (count - 1),
        meta={"batch": BATCH} if meta is None else meta,
    )
    return Extraction(graph, None)


def seconds(count: int, fixed: float) -> float:
    """The step time of the pipeline; of one microbatch that of one device, too."""
    return (count + 1) * (WORK / count + fixed)
