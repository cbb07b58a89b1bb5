"""The agent: problems of any size, on any devices, with one network; and what it imitates."""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from placeto.envs.features.groups import group_graph
from placeto.envs.features.pairs import PAIR_FEATURES, group_index
from placeto.heuristics.initial import single_devices
from placeto.models.agent import Agent, Teacher, Visit, Wanted, joined
from placeto.models.network import entropy
from placeto.models.placeto.network import KinTensors, PlacetoPolicy
from placeto.models.placeto.play import CompiledPolicy, Sweeps, play
from placeto.models.placeto.pools import kin_of
from placeto.models.placeto.settings import PlacetoConfig, PlacetoNetworkConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many, step_times
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.threads import one_thread_an_operation

STATES_AT_ONCE = 1024
MOST_BLOCKS = 8
SAME = 1e-9


class PlacetoAgent(Agent[Sweeps]):
    """Sweeps over the groups, each step of which chooses a device by the present schedule.

    Args:
        problems: what to place, on any clusters.
        config: shape of the policy, and how episodes run.
        evaluate: the simulator; the policy reads its schedules.
        teacher: gives the placements that lessons are of.

    Raises:
        PlacetoError: another evaluator.
    """

    network: PlacetoPolicy

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: PlacetoConfig,
        evaluate: Evaluator = simulate_many,
        teacher: Teacher | None = None,
    ) -> None:
        if evaluate is not simulate_many:
            raise PlacetoError(
                "placeto reads simulated schedules; it cannot be trained on measured step times"
            )
        self._problems = problems
        self._config = config
        self._teacher = teacher
        self._play = partial(play, memory_penalty=config.memory_penalty)
        # Made when they are first needed, and kept.
        self._graph = cache(lambda index: group_graph(problems[index]))
        self._index = cache(lambda index: group_index(problems[index]))
        self._kin = cache(lambda index: kin_of(problems[index], self._graph(index)))
        self._kin_tensors = cache(lambda index: KinTensors.of(self._kin(index)))
        self._single = cache(self._best_device)
        self._taught = cache(self._imitated)
        self._lesson = cache(self._prepared)
        self.network = PlacetoPolicy(PlacetoNetworkConfig(**config.part(PlacetoNetworkConfig)))

    def roll_out(
        self, wanted: Wanted, rng: np.random.Generator, visit: Visit | None = None
    ) -> Sweeps:
        """Goes through the groups, from one device; see `play.play`."""
        index = wanted.problem
        problem = self._problems[index]
        start = self._single(index) if wanted.start is None else wanted.start
        steps = self._config.sweeps * problem.num_groups
        noise = wanted.noise(rng, steps, wanted.episodes, problem.num_devices)[:, wanted.part]
        starts = np.tile(start, (noise.shape[1], 1))
        played = self._play(problem, self._guide(index), starts, np.ascontiguousarray(noise))
        if visit is not None:
            visit(played.best, simulate_many(problem, played.best))
        return played

    def lesson(self, index: int, number: int, progress: float) -> Sweeps | None:
        """Episodes that end in the teacher's placement: from one device, and from near to it.

        What is seen on the way depends on no policy, so a lesson is prepared once and kept. After
        the last comes the first again.

        Returns:
            The episodes; None without a teacher, and once the share that imitates is over.
        """
        if self._teacher is None or progress >= self._config.imitation:
            return None
        return self._lesson(index, number % self._config.lessons)

    def states_at_once(self, index: int) -> int:
        """So many that the arrays of a layer stay in the caches."""
        return STATES_AT_ONCE

    def terms(self, index: int, played: Sweeps, part: slice) -> tuple[Tensor, Tensor]:
        """Of the device that each step chose."""
        pairs, groups, choices, actions, devices, visited, starts = (
            torch.from_numpy(values).flatten(0, 1)[part]
            for values in (
                played.pairs, played.groups, played.open, played.actions,
                played.placed, played.visited, played.starts,
            )
        )  # fmt: skip
        episodes = played.actions.shape[1]
        current = torch.from_numpy(played.current).repeat_interleave(episodes)[part]
        embedded = self.network.embed(self._graph(index))
        if self.network.config.num_heads:
            pooled = self.network.pooled(
                embedded, self._kin_tensors(index), current, devices, visited, starts,
                pairs.shape[1],
            )  # fmt: skip
            pairs = torch.cat([pairs[:, :, :PAIR_FEATURES], pooled], dim=2)
        log = self.network(pairs, groups, embedded.table[current], choices).log_softmax(dim=-1)
        return log.gather(1, actions[:, None]).squeeze(1), entropy(log)

    def _best_device(self, index: int) -> Ints:
        """(num_groups,) the best device for all groups."""
        singles = single_devices(self._problems[index])
        outcomes = simulate_many(self._problems[index], singles)
        best: Ints = singles[np.lexsort((outcomes.step_time, ~outcomes.feasible))[0]]
        return best

    def _imitated(self, index: int) -> Ints:
        """(num_groups,) the teacher's placement, with like devices in one order."""
        assert self._teacher is not None
        problem = self._problems[index]
        first = int(np.bincount(self._single(index)).argmax())
        return relabelled(problem, self._teacher(problem), first)

    def _prepared(self, index: int, number: int) -> Sweeps:
        problem, taught = self._problems[index], self._taught(index)
        rng = np.random.default_rng([self._config.seed, index, number])
        near = [disturbed(problem, taught, rng) for _ in range(self._config.disturbed_lessons)]
        quiet = np.zeros((problem.num_groups, len(near), problem.num_devices))
        alike = np.tile(taught, (len(near), 1))
        guide, single = self._guide(index), self._single(index)[None]
        far = self._play(problem, guide, single, quiet[:, :1].copy(), forced=taught[None])
        others = self._play(problem, guide, np.stack(near), quiet, decided=True, forced=alike)
        lesson: Sweeps = joined([far, others])
        return lesson

    def _guide(self, index: int) -> CompiledPolicy:
        with torch.inference_mode(), one_thread_an_operation():
            return self.network.ready(self._graph(index), self._index(index), self._kin(index))


def relabelled(problem: PlacementProblem, devices: Ints, first: int) -> Ints:
    """The placement with devices that are alike swapped, so that they come up in one order.

    Which of several like devices a search took first is chance, and nothing to imitate. Along the
    topological order the device `first` comes up before those like it, then the others by number.

    Args:
        problem: what is placed.
        devices: (num_groups,) a placement.
        first: a device.

    Returns:
        (num_groups,) devices; as they were if the swap would change the step time (their channels
        differ) or give a group a device that it may not be on.
    """
    kinds = [device.likeness for device in problem.cluster.devices]
    free = sorted(range(problem.num_devices), key=lambda device: (device != first, device))
    label: dict[int, int] = {}
    for device in devices[problem.group_order].tolist():
        if device not in label:
            label[device] = next(other for other in free if kinds[other] == kinds[device])
            free.remove(label[device])
    swapped = np.array([label[device] for device in devices.tolist()])
    if not problem.allowed[np.arange(len(swapped)), swapped].all():
        return devices
    before, after = step_times(problem, np.stack([devices, swapped]))
    return swapped if abs(after - before) <= SAME * before else devices


def disturbed(problem: PlacementProblem, devices: Ints, rng: np.random.Generator) -> Ints:
    """The placement with up to `MOST_BLOCKS` runs along the topological order moved elsewhere."""
    result = devices.copy()
    order, groups = problem.group_order, problem.num_groups
    for _ in range(rng.integers(1, MOST_BLOCKS + 1)):
        length = int(max(groups / 2, 1) ** rng.random())
        begin = rng.integers(groups)
        block = order[begin : begin + length]
        device = int(rng.integers(problem.num_devices))
        result[block] = np.where(problem.allowed[block, device], device, result[block])
    return result
