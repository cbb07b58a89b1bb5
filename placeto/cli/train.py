"""`placeto train`."""

from dataclasses import dataclass, field
from typing import Annotated

from tyro.conf import OmitArgPrefixes, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import ClusterName, GroupingText, parse_grouping
from placeto.cli.output import note, print_json
from placeto.cli.progress import progress
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.problem import PlacementProblem
from placeto.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Train:
    """Trains a policy by REINFORCE or PPO; goes on with the run that the directory holds.

    Attributes:
        graphs: Bundled graphs or graph files, taken in turn.
        cluster: A preset (see `placeto list`) or a cluster file.
        output: Run directory.
        grouping: Which ops are placed together: none, colocation, auto, or at most N groups.
        training: How to train.
        json: Print one JSON document instead of text.
    """

    graphs: tuple[str, ...]
    cluster: ClusterName
    output: Annotated[str, arg(aliases=["-o"], metavar="DIR")]
    grouping: GroupingText = "auto"
    training: OmitArgPrefixes[TrainingConfig] = field(default_factory=TrainingConfig)
    json: bool = False


def run(arguments: Train) -> int:
    """Trains, and says where the policy is."""
    from placeto.training.run import train

    cluster = load_cluster(arguments.cluster)
    grouping = parse_grouping(arguments.grouping)
    problems = [
        PlacementProblem(load_graph(name), cluster, grouping)
        for name in dict.fromkeys(arguments.graphs)
    ]
    try:
        with progress("train") as report:
            trainer = train(problems, arguments.training, arguments.output, progress=report)
    except KeyboardInterrupt:
        note(f"interrupted; the same command goes on from the checkpoint in {arguments.output}")
        return INTERRUPTED
    best = {problem.graph.name: cost for problem, cost in zip(problems, trainer.best, strict=True)}
    if arguments.json:
        print_json(
            {
                "output": arguments.output,
                "updates": trainer.updates,
                "episodes": trainer.episodes,
                "evaluations": trainer.evaluations,
                "best_step_time": best,
            }
        )
    note(
        f"{trainer.updates} updates, {trainer.episodes} episodes; the run is in {arguments.output}"
    )
    return 0
