"""`placeto show`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from placeto.cli.arguments import Graph, GroupingText, TablesJson, parse_grouping
from placeto.cli.output import print_json, print_rich
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.problem import PlacementProblem
from placeto.reports.rows import baseline
from placeto.reports.summary import cluster_summary, fastest_kind, graph_summary, groups_summary
from placeto.reports.tables import cluster_table, graph_tables, groups_table


@dataclass(frozen=True, kw_only=True)
class Show:
    """Shows what is in a graph: ops, bytes, critical path, groups, and on a cluster its bounds.

    Attributes:
        cluster: A preset or a cluster file: adds bounds and the best single device.
    """

    graph: Graph
    cluster: Annotated[str | None, arg(metavar="PRESET|FILE")] = None
    grouping: GroupingText = "auto"
    json: TablesJson = False


def run(arguments: Show) -> int:
    """Prints the summary."""
    graph = load_graph(arguments.graph)
    grouping = parse_grouping(arguments.grouping)
    cluster = None if arguments.cluster is None else load_cluster(arguments.cluster)
    problem = None if cluster is None else PlacementProblem(graph, cluster, grouping)
    kind = fastest_kind(graph, tuple(graph.op_seconds) if cluster is None else cluster.kinds)
    groups = groups_summary(graph, grouping if problem is None else problem.op_group, kind)
    if arguments.json:
        document = graph_summary(graph, kind)
        document["grouping"] = {"grouping": arguments.grouping, **groups}
        if problem is not None:
            document["on_cluster"] = cluster_summary(problem, baseline(problem))
        print_json(document)
    else:
        tables = [*graph_tables(graph, kind, path=problem is None), groups_table(groups)]
        if problem is not None:
            tables.append(cluster_table(problem, baseline(problem)))
        print_rich(*tables)
    return 0
