"""Problems with every group pinned, and the seconds that they take, worked out by hand."""

from placeto import Cluster, ComputationGraph, PlacementProblem
from tests.builders import make_cluster, make_graph


def pinned(graph: ComputationGraph, cluster: Cluster, *devices: int) -> PlacementProblem:
    return PlacementProblem(graph, cluster, "papers", pins=dict(enumerate(devices)))


TWO_READERS = make_graph({"a": 1, "b": 1, "c": 1}, [("a", 4, ["b", "c"])])
LINK = {"latency": 0.25, "overhead": 0.5}
CHAIN = make_graph({"a": 1, "b": 2, "c": 1}, [("a", 4, ["b"]), ("b", 4, ["c"])])
THREE = make_graph({"a": 1, "b": 2, "c": 3})
JOINED = make_graph({"a": 1, "zero": 0}, [("a", 4, ["zero"])], colocation={"a": 0, "zero": 0})
CASES = {
    # a ends at 1; one copy is there at 5.25, the other, from 5.5 on, at 9.75.
    "two copies queue": (pinned(TWO_READERS, make_cluster(3, **LINK), 0, 1, 2), 10.75),
    "one copy serves both": (
        pinned(TWO_READERS, make_cluster(3, multicast=True, **LINK), 0, 1, 2),
        6.25,
    ),
    "one copy for one device": (
        pinned(TWO_READERS, make_cluster(2, launch_overhead=0.5, **LINK), 0, 1, 1),
        7.75,
    ),
    # There at 5.25, b until 7.25, back at 11.5.
    "there and back": (pinned(CHAIN, make_cluster(2, **LINK), 0, 1, 0), 12.5),
    "overhead between, not after": (
        pinned(CHAIN, make_cluster(1, launch_overhead=0.5), 0, 0, 0),
        5.0,
    ),
    "no two at a time": (pinned(THREE, make_cluster(2, launch_overhead=0.5), 0, 0, 0), 7.0),
    "an op of no duration waits for the device": (
        pinned(JOINED, make_cluster(1, launch_overhead=0.5), 0),
        1.5,
    ),
}
