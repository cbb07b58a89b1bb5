"""A CP-SAT model of assignment and schedule together, op by op and transfer by transfer."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from placeto.graph import Ints
from placeto.placers.exact.assignment import Assignment, in_ticks
from placeto.placers.exact.cp_sat import cp_model
from placeto.problem import Bools, PlacementProblem


def add_schedule(problem: PlacementProblem, made: Assignment) -> None:
    """Adds starts of ops and transfers to an assignment: a relaxation of the simulator.

    What semantics version 1 forbids, the model forbids, but for the order of service, which is
    free:

    - An op starts when its inputs are on its device, and when a producer in its own group is done
      with the device, launch overhead included.
    - Ops of non-zero duration do not overlap on a device, launch overheads included. (Ops of no
      duration wait for the device in the simulator; they need not here.)
    - A tensor with consumers on other devices is carried there by one transfer a device, or, on a
      multicast channel, one a channel; it starts when the producer has finished, and what is
      carried is there after bytes/bandwidth + latency.
    - Transfers do not overlap on a channel, overheads included.
    - The makespan is the latest finish of any op.

    Every schedule of the simulator that fits in memory is one of this model, but for rounding; so
    the least makespan is a bound.
    """
    starts = [
        made.model.new_int_var(0, made.horizon, f"start {op}") for op in range(len(made.held))
    ]
    finish = [
        start + _chosen(made, group, ticks)
        for start, group, ticks in zip(starts, problem.op_group, made.seconds, strict=True)
    ]
    for end in finish:
        made.model.add(end <= made.makespan)
    _add_inputs(problem, made, starts, finish)
    _part_ops(problem, made, starts)
    _add_transfers(problem, made, starts, finish)


def _chosen(made: Assignment, group: int, ticks: Ints) -> cp_model.LinearExpr | int:
    """The (num_devices,) ticks of the device that a group is on."""
    if (ticks == ticks[0]).all():
        return int(ticks[0])
    return cp_model.LinearExpr.weighted_sum(made.on[group], ticks.tolist())


def _add_inputs(
    problem: PlacementProblem,
    made: Assignment,
    starts: list[cp_model.IntVar],
    finish: list[cp_model.LinearExpr],
) -> None:
    group = problem.op_group
    for producer, consumer in zip(*problem.graph.op_edges, strict=True):
        if group[producer] == group[consumer]:
            held = starts[producer] + _chosen(made, group[producer], made.held[producer])
            made.model.add(starts[consumer] >= held)
        else:
            made.model.add(starts[consumer] >= finish[producer])


def _part_ops(problem: PlacementProblem, made: Assignment, starts: list[cp_model.IntVar]) -> None:
    by_op = problem.allowed[problem.op_group]
    for device in range(problem.num_devices):
        made.model.add_no_overlap(
            made.model.new_optional_fixed_size_interval_var(
                starts[op],
                int(made.held[op, device]),
                made.on[problem.op_group[op]][device],
                f"{op} on {device}",
            )
            for op in np.flatnonzero(by_op[:, device] & (made.held[:, device] > 0)).tolist()
        )


def _add_transfers(
    problem: PlacementProblem,
    made: Assignment,
    starts: list[cp_model.IntVar],
    finish: list[cp_model.LinearExpr],
) -> None:
    model, p = made.model, problem.arrays
    size = in_ticks(p.tensor_bytes[:, None] / p.bandwidth, made.tick)
    latency, overhead = in_ticks(p.latency, made.tick), in_ticks(p.overhead, made.tick)
    routes = list(_routes(p.channel_between, p.multicast))
    transfers = defaultdict(list)
    for tensor, op in enumerate(p.tensor_producer.tolist()):
        group = p.op_group[op]
        readers = p.edge_consumer[p.edge_start[tensor] : p.edge_start[tensor + 1]]
        readers = readers[p.op_group[readers] != group]
        for source, channel, targets in routes if len(readers) else ():
            if not problem.allowed[group, source]:
                continue
            here = made.on[group][source]
            name = f"{tensor} from {source} to {targets}"
            sent = model.new_int_var(0, made.horizon, name)
            model.add(sent >= finish[op]).only_enforce_if(here)
            carried = model.new_bool_var(f"{name} is carried")
            for target in targets:
                for reader in readers.tolist():
                    there = made.on[p.op_group[reader]][target]
                    model.add_bool_or([here.negated(), there.negated(), carried])
                    arrival = sent + int(size[tensor, channel] + latency[channel])
                    model.add(starts[reader] >= arrival).only_enforce_if(here, there)
            transfers[channel].append(
                model.new_optional_fixed_size_interval_var(
                    sent, int(size[tensor, channel] + overhead[channel]), carried, name
                )
            )
    for some in transfers.values():
        model.add_no_overlap(some)


def _routes(channel_between: Ints, multicast: Bools) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Source, channel, and the devices that one transfer of a tensor serves."""
    for source, channels in enumerate(channel_between.tolist()):
        targets = defaultdict(list)
        for target, channel in enumerate(channels):
            if target != source:
                targets[channel, -1 if multicast[channel] else target].append(target)
        for (channel, _), served in targets.items():
            yield source, channel, tuple(served)
