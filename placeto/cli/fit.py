"""`placeto fit`."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated

from tyro.conf import Positional, arg

from placeto.cli.arguments import ClusterName, Json, Reserved
from placeto.cli.output import note, print_result
from placeto.cli.sources import extracting, tell_of_estimates, torch_source
from placeto.cluster import load_cluster
from placeto.extraction.user_code import user_function
from placeto.graph import ComputationGraph
from placeto.placement.reserve import reserved
from placeto.placers.fitting import largest_batch
from placeto.placers.strategies import Strategy
from placeto.reports.strategies import fit_table
from placeto.support.errors import PlacetoError


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Says which batch of a PyTorch module fits into the memory of some devices.

    Attributes:
        source: `net.py:make`, a function with an option `batch` that returns a module and its
            inputs; its own batch is tried first.
        strategy: How it is run: on one device (single), layers on several, one after the other
            (naive), in a pipeline, or whole on each device with a share of the batch
            (data-parallel).
        microbatches: Into how many parts a batch is divided, which batches are multiples of.
    """

    source: Annotated[Positional[str], arg(metavar="FILE.py:FUNCTION")]
    cluster: ClusterName
    strategy: Strategy = "single"
    microbatches: int = 1
    reserve: Reserved | None = None
    json: Json = False


def run(arguments: Fit) -> int:
    """Tries batches; status 1 if none fits."""
    source = torch_source(arguments.source)
    if "microbatches" in source.options:
        raise PlacetoError(f"{source.text}: give --microbatches in the place of the option")
    if arguments.microbatches < 1:
        raise PlacetoError(f"microbatches is {arguments.microbatches}, expected a number from 1")
    cluster = reserved(load_cluster(arguments.cluster), arguments.reserve)
    from placeto.extraction.pytorch.source import STEP_OPTIONS, extract_module

    _, _, own = user_function(source, STEP_OPTIONS)
    if not isinstance(batch := own.get("batch"), int):
        raise PlacetoError(f"{source.text}: {source.target} takes no batch=N")
    graphs: list[ComputationGraph] = []
    with extracting(f"fitting {source.target}", interval_seconds=0) as report:

        def make(examples: int) -> ComputationGraph:
            report(f"batch {examples}")
            given = {**source.options, "batch": examples, "microbatches": arguments.microbatches}
            extraction = extract_module(replace(source, options=given), lambda line: None)
            graphs[:] = [extraction.graph]
            return extraction.graph

        tries = largest_batch(make, cluster, arguments.strategy, batch, arguments.microbatches)
    fitting = max((each.batch for each in tries if each.found.feasible), default=None)
    document = {
        "source": source.text,
        "cluster": cluster.name,
        "strategy": arguments.strategy,
        "batch": batch,
        "fits": tries[0].found.feasible,
        "largest": fitting,
        "tries": [
            {"batch": each.batch, "fullness": each.fullness, **asdict(each.found)} for each in tries
        ],
    }
    print_result(arguments.json, document, [fit_table(tries)])
    tell_of_estimates(graphs[-1], cluster)
    if fitting is None:
        note(f"no batch fits, not even {min(each.batch for each in tries)}")
        return 1
    first = "fits" if tries[0].found.feasible else "does not fit"
    note(f"batch {batch} {first}; the largest that does is {fitting}")
    return 0
