"""A problem under other costs: channels or ops that are faster or slower than believed."""

from dataclasses import replace

from placeto.problem import PlacementProblem


def scaled_problem(
    problem: PlacementProblem, *, bandwidth: float = 1.0, op_seconds: float = 1.0
) -> PlacementProblem:
    """The same groups and pins, with every channel's bandwidth and every op's time scaled.

    Args:
        problem: as it is believed to be.
        bandwidth: factor above 0 of the bytes a second of every channel; latencies and overheads
            stay as they are.
        op_seconds: factor above 0 of the seconds of every op on every kind of device; launch
            overheads stay as they are.
    """
    graph, cluster = problem.graph, problem.cluster
    columns = {kind: op_seconds * graph.op_seconds[kind] for kind in cluster.kinds}
    channels = [
        replace(channel, bandwidth=bandwidth * channel.bandwidth) for channel in cluster.channels
    ]
    return PlacementProblem(
        replace(graph, op_seconds=columns),
        replace(cluster, channels=tuple(channels)),
        problem.op_group,
        pins=problem.pins,
    )
