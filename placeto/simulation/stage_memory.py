"""What the stages of a pipeline hold in memory, as `torch.distributed.pipelining` does.

As in the simulator parameters are there throughout, a tensor from the start of its op until its
last reader has finished, and `temp_bytes` while the op runs. Which ops those are follows the
schedule: a process makes its passes in a fixed order. PyTorch (2.13) holds more than that:

- buffers for what a stage receives, of every microbatch, forward and back, from the first step on;
- what a stage yields, until that microbatch is back (it is an input of `backward`) and the next one
  has gone forward; the last stage's output, too, which the loss reads;
- gradients that are sent: `1f1b` until the next microbatch is back, others until all are;
- gradients of parameters until all updates are made, and the batch, which the caller has.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from placeto.graph import BACKWARD, FORWARD, UPDATE, ComputationGraph
from placeto.problem import PlacementProblem
from placeto.simulation.stages import PipelineSchedule, program, stage_of_groups
from placeto.support.arrays import Bools, Floats, Ints


def stage_memory(problem: PlacementProblem, devices: Ints, schedule: PipelineSchedule) -> Ints:
    """(num_devices,) peak bytes of a step of stages.

    Args:
        problem: its groups are a row, such as `stage_units`; a stretch of them is a stage.
        devices: (num_groups,) where each group is.
        schedule: that the stages run.
    """
    graph, traits = problem.graph, _traits(problem)
    stage = stage_of_groups(devices)[problem.op_group]
    processes = len(np.unique(devices))
    passes = _Passes(problem, stage, processes, schedule)
    producer, size = graph.tensor_producer, graph.tensor_bytes
    here, place = stage[producer], passes.place
    target = stage[graph.edge_consumer]
    crosses = (target != here[graph.edge_tensor]) & (size[graph.edge_tensor] > 0)

    death = place[producer]
    np.maximum.at(death, graph.edge_tensor[~crosses], place[graph.edge_consumer[~crosses]])
    forward, part = graph.phase[producer] == FORWARD, graph.microbatch[producer]
    yielded = np.zeros(graph.num_tensors, dtype=bool)
    yielded[graph.edge_tensor[crosses]] = True
    sent_back = yielded & (graph.phase[producer] == BACKWARD) & (part >= 0)
    yielded = (yielded | traits.output) & forward & (part >= 0)
    for held, until in ((yielded, passes.yielded), (sent_back, passes.sent_back)):
        death[held] = np.maximum(death[held], until[here[held], part[held]])
    birth = np.where(traits.given, passes.first[here % processes], place[producer])
    stays = traits.given | traits.updating
    death[stays] = passes.last[here[stays] % processes]

    change = np.zeros(graph.num_ops + 1)
    for begin, end, held in ((birth, death, size), (place, place, graph.temp_bytes)):
        change += np.bincount(begin, held, len(change)) - np.bincount(end + 1, held, len(change))
    peaks = np.maximum.reduceat(np.cumsum(change[:-1]), passes.first)
    always = np.bincount(stage % processes, graph.param_bytes, processes)
    received, to = np.unique(np.stack([graph.edge_tensor, target])[:, crosses], axis=1)
    always += np.bincount(to % processes, size[received], processes)

    found = np.zeros(problem.num_devices, dtype=np.int64)
    of_stages = devices[np.append(True, devices[1:] != devices[:-1])]
    found[of_stages[:processes]] = peaks + always
    return found


@dataclass(frozen=True, eq=False)
class _Traits:
    """What is known of a graph's tensors and ops wherever they are.

    Attributes:
        given: (num_tensors,) whether one is an input of the step.
        output: (num_tensors,) whether it is what the loss reads of the module.
        updating: (num_tensors,) whether an update reads it.
        in_pass: (num_ops,) by what ops of a pass are ordered.
    """

    given: Bools
    output: Bools
    updating: Bools
    in_pass: Floats


_TRAITS: WeakKeyDictionary[PlacementProblem, _Traits] = WeakKeyDictionary()


def _traits(problem: PlacementProblem) -> _Traits:
    """The traits of a problem's graph, found when first asked for."""
    if problem not in _TRAITS:
        graph = problem.graph
        given = np.array([kind == "input" for kind in graph.op_types], dtype=bool)
        paths = graph.meta.get("pytorch", {}).get("modules", graph.op_names)
        inside = np.array([path is not None for path in paths], dtype=bool)
        phase, source = graph.phase, graph.tensor_producer[graph.edge_tensor]
        in_loss = (phase == FORWARD) & ~inside
        output, updating = np.zeros((2, graph.num_tensors), dtype=bool)
        output[graph.edge_tensor[in_loss[graph.edge_consumer] & inside[source]]] = True
        updating[graph.edge_tensor[(phase == UPDATE)[graph.edge_consumer]]] = True
        _TRAITS[problem] = _Traits(given[graph.tensor_producer], output, updating, _in_pass(graph))
    return _TRAITS[problem]


class _Passes:
    """Places of ops in one row: process after process, each in the order in which it runs them.

    Attributes:
        place: (num_ops,) of each op.
        first, last: (num_processes,) of each process's ops.
        yielded: (num_stages, num_microbatches) until where what a forward pass yields is held.
        sent_back: the same of what a backward pass sends.
    """

    def __init__(
        self, problem: PlacementProblem, stage: Ints, processes: int, schedule: PipelineSchedule
    ) -> None:
        graph = problem.graph
        stages, count = int(stage.max()) + 1, graph.num_microbatches
        number = np.zeros((stages, count, 2), dtype=np.int64)  # of a pass, in its process
        for process in range(processes):
            turns = program(schedule, process, processes, stages, count)
            own = [turn.compute for turn in turns if turn.compute is not None]
            for place, each in enumerate(own):
                number[each.stage, each.microbatch, int(each.forward)] = place + 1
        behind = 2 * count * (stages // processes) + 1  # all passes, where updates are
        forward = (graph.phase != BACKWARD).astype(np.int64)
        of_pass = number[stage, np.maximum(graph.microbatch, 0), forward]
        of_pass[graph.microbatch < 0] = 0
        of_pass[graph.phase == UPDATE] = behind
        key = (stage % processes) * (behind + 1) + of_pass
        order = np.lexsort((_traits(problem).in_pass, key))
        self.place = np.empty(graph.num_ops, dtype=np.int64)
        self.place[order] = np.arange(graph.num_ops)
        sorted_key = key[order]

        def end(of_process: Ints, number: Ints) -> Ints:
            """Where a process's passes up to a number end."""
            wanted = of_process * (behind + 1) + number
            return np.searchsorted(sorted_key, wanted, side="right") - 1

        self.last = end(np.arange(processes), np.full(processes, behind))
        self.first = np.append(0, self.last[:-1] + 1)
        until = np.full((2, stages, count), behind - 1)
        if schedule == "interleaved":
            until[1] = number[..., 0]
        else:
            # Names in PyTorch's loop stand for them until the next pass of the kind gives new ones.
            until[:, :, :-1] = number[:, 1:].transpose(2, 0, 1)
            until[1] = np.maximum(until[1], number[..., 0])
            if schedule == "gpipe":
                until[0] = behind - 1
        owner = (np.arange(stages) % processes)[:, None]
        self.sent_back, self.yielded = (end(owner, each) for each in until)


def _in_pass(graph: ComputationGraph) -> Floats:
    """(num_ops,) by what ops of a pass are ordered: as traced, but for sums of gradients.

    PyTorch adds up the gradient of a parameter as soon as it is there.
    """
    found = np.empty(graph.num_ops)
    found[graph.topological_order] = np.arange(graph.num_ops)
    made = np.bincount(graph.tensor_producer, graph.tensor_bytes, graph.num_ops)
    soon = (made == 0) & (graph.phase == BACKWARD)
    edges = soon[graph.edge_consumer]
    latest = np.full(graph.num_ops, -1.0)
    source = graph.tensor_producer[graph.edge_tensor[edges]]
    np.maximum.at(latest, graph.edge_consumer[edges], found[source])
    return np.where(soon & (latest >= 0), latest + 0.5, found)
