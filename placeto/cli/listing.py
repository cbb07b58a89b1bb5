"""`placeto list`."""

from dataclasses import dataclass

from placeto.cli.output import print_json, print_rich
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.grouping import group_ops
from placeto.placers import PLACERS, Placer
from placeto.reports.rows import ClusterListing, GraphListing, Listing, PlacerListing
from placeto.reports.tables import list_tables
from placeto.support import bundle
from placeto.zoo.families import FAMILIES, SPLITS


@dataclass(frozen=True, kw_only=True)
class List:
    """Lists what ships with the package: graphs, families, cluster presets, placers, policies.

    Attributes:
        json: Print one JSON document instead of tables.
    """

    json: bool = False


def run(arguments: List) -> int:
    """Prints the listing."""
    listing: Listing = {
        "graphs": [_graph(name) for name in bundle.names("graphs", (".json.gz", ".json"))],
        "families": [
            {"name": name, "summary": family.summary, "graphs": SPLITS}
            for name, family in FAMILIES.items()
        ],
        "clusters": [_cluster(name) for name in bundle.names("clusters", (".yaml",))],
        "placers": [_placer(placer) for placer in PLACERS.values()],
        "policies": [
            {"name": path.stem} for path in sorted((bundle.DATA / "policies").glob("*.json"))
        ],
    }
    if arguments.json:
        print_json(listing)
    else:
        print_rich(*list_tables(listing))
    return 0


def _placer(placer: Placer) -> PlacerListing:
    config = placer.config
    return {
        "name": placer.name,
        "summary": placer.summary,
        "settings": {} if config is None else config.settings,
    }


def _graph(name: str) -> GraphListing:
    graph = load_graph(name)
    return {
        "name": name,
        "ops": graph.num_ops,
        "groups": int(group_ops(graph, "auto").max()) + 1,
        "kind": graph.meta.get("kind"),
        "source": graph.meta.get("source"),
        "op_seconds": list(graph.op_seconds),
    }


def _cluster(name: str) -> ClusterListing:
    cluster = load_cluster(name)
    return {
        "name": name,
        "devices": [
            {"name": device.name, "kind": device.kind, "memory_bytes": device.memory_bytes}
            for device in cluster.devices
        ],
        "source": cluster.source,
    }
