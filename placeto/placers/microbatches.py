"""How many microbatches a training step is best split into."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from placeto.cluster import Cluster
from placeto.extraction import Extraction, extract
from placeto.graph import ComputationGraph
from placeto.objective import overflow
from placeto.placement import Placement
from placeto.placement.accelerators import accelerators
from placeto.placers.pipeline import plan_pipeline
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.simulation.stages import PipelineSchedule
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.units import format_seconds

MOST_OPS = 100_000  # what is searched within seconds
LONGEST_SECONDS = 120.0  # to extract one graph
WORSE = 1.05  # times the best step time: clearly worse
_AUTO = re.compile(r"(?<=[?&])microbatches=auto(?=&|$)")


@dataclass(frozen=True)
class Tries:
    """What was found of a source, split into more and more microbatches.

    Attributes:
        placements: microbatches -> the best placement that was found.
        extraction: what was extracted with the best number.
        stopped: why no more were tried.
        interrupted: whether Ctrl-C ended it.
        least: microbatches that the best one has at least.
    """

    placements: Mapping[int, Placement]
    extraction: Extraction
    stopped: str
    interrupted: bool = False
    least: int = 1

    @property
    def best(self) -> Placement:
        """The placement that fits in memory, and takes least."""
        return best_of(*(each for count, each in self.placements.items() if count >= self.least))

    @property
    def wall_seconds(self) -> float:
        """Seconds that all searches took together, without extraction."""
        return sum(each.wall_seconds for each in self.placements.values())


def is_open(source: str) -> bool:
    """Whether a source has `microbatches=auto`."""
    return _AUTO.search(source) is not None


def best_of(*placements: Placement) -> Placement:
    """Of placements of the same batch, the one that fits in memory, and takes least."""
    return min(placements, key=worth)


def worth(placement: Placement) -> tuple[int, float]:
    """Bytes over the memory of all devices, and the batch's seconds; less is better."""
    return int(overflow(placement.problem, placement.peak_memory)), placement.batch_seconds


def doublings(batch: int) -> list[int]:
    """Divisors of a batch from 1, each the least that is twice the one before, or more."""
    counts = [1]
    for divisor in range(2, batch + 1):
        if batch % divisor == 0 and divisor >= 2 * counts[-1]:
            counts.append(divisor)
    return counts


def try_microbatches(
    source: str,
    problem: Callable[[ComputationGraph], PlacementProblem],
    method: str = "auto",
    budget_seconds: float = 30.0,
    seed: int = 0,
    progress: Progress = silent,
    settings: Mapping[str, object] | None = None,
) -> Tries:
    """Extracts and places a training step of 1, 2, 4, … microbatches, all that divide its batch.

    It ends when two in a row are clearly worse than the best (by a twentieth, or by bytes that do
    not fit in memory), or when the next has too many ops or would take too long to extract.

    Args:
        source: as `extract` takes it, with `microbatches=auto`.
        problem: makes the problem of placing a graph, such as `lambda graph:
            ordered(PlacementProblem(graph, cluster))`.
        method: see `place`.
        budget_seconds: seconds for the searches of all divisors of the batch; each has its part.
        seed: see `place`.
        progress: told of what is going on, in single lines.
        settings: see `place`.

    Returns:
        The curve. After an interrupt (Ctrl-C), what is known of it, if anything is.

    Raises:
        PlacetoError: the source says no `microbatches=auto`, or not how many examples it has; see
            `extract` and `place`.
    """

    def placed(graph: ComputationGraph, share: float) -> Placement:
        return place(problem(graph), method, share, seed, settings=settings)

    return _tried(source, placed, 1, budget_seconds, progress)


def try_pipelines(
    source: str,
    cluster: Cluster,
    schedule: PipelineSchedule | None = None,
    progress: Progress = silent,
) -> Tries:
    """Extracts and plans a pipeline of a PyTorch module of 2, 4, … microbatches.

    For one microbatch the best single device is what is found; else it is as `try_microbatches`.

    Args:
        source: as `extract` takes it, with `microbatches=auto`.
        cluster: the devices.
        schedule: see `plan_pipeline`.
        progress: told of what is going on, in single lines.

    Raises:
        PlacetoError: as `try_microbatches` and `plan_pipeline`; the batch is one example.
    """

    def placed(graph: ComputationGraph, share: float) -> Placement:
        if graph.num_microbatches == 1:
            return place(PlacementProblem(graph, accelerators(cluster)), "single")
        return plan_pipeline(graph, cluster, schedule)[1]

    return _tried(source, placed, 2, 0.0, progress)


def _tried(
    source: str,
    placed: Callable[[ComputationGraph, float], Placement],
    least: int,
    budget_seconds: float,
    progress: Progress,
) -> Tries:
    """What is found by placing a graph within seconds, in at least so many microbatches."""
    if not is_open(source):
        raise PlacetoError(f"{source}: expected microbatches=auto among its options")
    placements: dict[int, Placement] = {}
    best, interrupted, worse, took = None, False, 0, 0.0
    counts = [1]  # more when the first graph says how large the batch is
    for count in counts:
        if best is not None and (stopped := _too_large(count, placements, took)):
            break
        try:
            progress(f"{count}: extracting")
            began = time.monotonic()
            extraction = extract(_AUTO.sub(f"microbatches={count}", source))
            took = time.monotonic() - began
            graph = extraction.graph
            if graph.batch is None:
                raise PlacetoError(
                    f"{source}: its function does not say how many examples it has; let it take "
                    "batch, or give microbatches a number"
                )
            if count == 1:
                counts += doublings(graph.batch)[1:]
                if graph.batch < least:
                    raise PlacetoError(f"{source}: one example makes no pipeline; give it a batch")
            progress(f"{count}: placing {graph.num_ops} ops")
            share = budget_seconds / len(counts)
            found = placed(graph, share)
        except KeyboardInterrupt:
            if best is None:
                raise
            interrupted = True
        else:
            placements[count] = found
            interrupted = found.interrupted
            if count < least:
                continue
            over, seconds = worth(found)
            kept = (each for number, each in placements.items() if number >= least)
            least_over, least_seconds = worth(fastest := best_of(*kept))
            if found is fastest:
                best = extraction
            worse = worse + 1 if over > least_over or seconds > WORSE * least_seconds else 0
        if interrupted or worse == 2:
            stopped = "interrupted" if interrupted else "the last two are clearly worse"
            break
    else:
        stopped = f"{counts[-1]} is one example each"
    assert best is not None
    return Tries(placements, best, stopped, interrupted, least)


def _too_large(count: int, placements: Mapping[int, Placement], took: float) -> str | None:
    """Why so many microbatches are not tried; `took` are the seconds that the last graph took."""
    before, last = list(placements.items())[-1]
    ops = last.problem.graph.num_ops * count // before
    if ops > MOST_OPS:
        return f"{count} would have about {ops} ops"
    if (seconds := took * count / before) > LONGEST_SECONDS:
        return f"{count} would take about {format_seconds(seconds)} to extract"
    return None
