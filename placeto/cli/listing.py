"""`placeto list`."""

from dataclasses import dataclass

from placeto.cli.arguments import TablesJson
from placeto.cli.output import print_json, print_rich
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.placers import PLACERS
from placeto.reports.instances import instance_row, instances_table
from placeto.reports.summary import num_groups
from placeto.reports.tables import list_tables
from placeto.support import bundle
from placeto.zoo.families import FAMILIES, SPLITS
from placeto.zoo.instances import instances


@dataclass(frozen=True, kw_only=True)
class List:
    """Lists what ships: graphs, families, cluster presets, placers, policies, named instances."""

    json: TablesJson = False


def run(arguments: List) -> int:
    """Prints the listing."""
    graphs = {name: load_graph(name) for name in bundle.names("graphs", (".json.gz", ".json"))}
    clusters = {name: load_cluster(name) for name in bundle.names("clusters", (".yaml",))}
    policies = bundle.names("policies", (".json",))
    if not arguments.json:
        print_rich(*list_tables(graphs, clusters, policies), instances_table(instances().values()))
        return 0
    rows = [
        {
            "name": name,
            "ops": graph.num_ops,
            "groups": num_groups(graph),
            "kind": graph.meta.get("kind"),
            "source": graph.meta.get("source"),
            "op_seconds": list(graph.op_seconds),
        }
        for name, graph in graphs.items()
    ]
    families = [
        {"name": name, "summary": family.summary, "graphs": SPLITS}
        for name, family in FAMILIES.items()
    ]
    presets = []
    for name, cluster in clusters.items():
        devices = [
            {"name": device.name, "kind": device.kind, "memory_bytes": device.memory_bytes}
            for device in cluster.devices
        ]
        presets.append({"name": name, "devices": devices, "source": cluster.source})
    placers = []
    for placer in PLACERS.values():
        settings = placer.config.settings if placer.config is not None else {}
        placers.append({"name": placer.name, "summary": placer.summary, "settings": settings})
    named = [{"name": name} for name in policies]
    document = {"graphs": rows, "families": families, "clusters": presets, "placers": placers}
    known = [instance_row(each) for each in instances().values()]
    print_json({**document, "policies": named, "instances": known})
    return 0
