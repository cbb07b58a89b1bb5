"""Annealing: chains over all cores, each in a thread of its own, that exchange what they find."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import get_num_threads

from placeto.envs.features.pairs import group_index
from placeto.models.placeto.play import CompiledPolicy
from placeto.models.placeto.scoring import Weights
from placeto.objective import overflow, rank, search_costs
from placeto.problem import PlacementProblem
from placeto.search.chain import (
    BEST_RANK,
    BEST_STEP_TIME,
    EVALUATIONS,
    Chain,
    ChainTask,
    go_on_from,
    new_chain,
    run_chain,
)
from placeto.search.incumbent import Incumbent
from placeto.search.moves import neighbourhood
from placeto.search.settings import SearchConfig
from placeto.simulation import Outcomes
from placeto.simulation.reduction import compiled
from placeto.simulation.state import Buffers, buffers
from placeto.support.arrays import Ints
from placeto.support.units import format_seconds

REPORTS = 100  # lines of progress in the whole budget
CHUNK_SECONDS = 0.03  # that chains run between two looks at the clock
CHUNK = 50  # proposals that they make in between where placements are counted
USUAL_CHAINS = 2  # there, so that the result does not depend on the machine
# Of fewer groups, each is a larger share of the step: the search is as much hotter.
TEMPERATE_GROUPS = 100


@dataclass(frozen=True, eq=False)
class ChainWorker:
    """A chain with all that it needs of its own."""

    chain: Chain
    states: Buffers
    rng: np.random.Generator

    def run(self, task: ChainTask, temperature: float, proposals: int) -> None:
        """Goes on for so many proposals."""
        run_chain(task, self.chain, *self.states, temperature, proposals, self.rng)


def anneal(
    incumbent: Incumbent, rng: np.random.Generator, guide: CompiledPolicy, config: SearchConfig
) -> None:
    """Anneals from the best placement so far until the budget ends.

    Each chain is a simulated annealing (Kirkpatrick, Gelatt & Vecchi 1983) of its own, by moves
    drawn evenly and moves that the policy would make, more of the kinds that paid. Now and then
    all go on from the best that any has found. Progress is told, and the clock looked at, in
    between.

    Args:
        incumbent: what is offered to; it has a placement.
        rng: draws the chains' generators.
        guide: the policy; see `unguided`.
        config: settings.
    """
    problem = incumbent.problem
    space = neighbourhood(problem)
    if len(space.movable) <= 1:  # every placement is among the starts
        return
    scale = incumbent.step_time or 1.0
    heat = scale * max(TEMPERATE_GROUPS / problem.num_groups, 1.0)
    task = ChainTask(compiled(problem).compiled, guide, space, scale)
    count = config.chains or (get_num_threads() if config.max_evaluations is None else USUAL_CHAINS)
    workers = [_worker(incumbent, task, draws) for draws in rng.spawn(count)]
    limit = config.max_evaluations
    begun, evaluations = incumbent.share_spent(limit), incumbent.evaluations
    proposals, exchanges, reports = 1, 0, 0
    with ThreadPoolExecutor(count) as pool:
        while (spent := incumbent.share_spent(limit)) < 1 and not incumbent.expired:
            done = (spent - begun) / (1 - begun)
            if done * (config.exchanges + 1) >= exchanges + 1:
                exchanges += 1
                for worker in workers:
                    go_on_from(worker.chain, _best(incumbent)[0], _cost(incumbent, scale))
            if limit is not None:
                left = limit - incumbent.evaluations
                proposals = min(CHUNK, -(-left // count))
            made = incumbent.evaluations - evaluations
            placements = made / done / problem.num_groups if done > 0 else 0.0
            temperature = heat * config.temperature(done, placements)
            began = time.perf_counter()
            running = [pool.submit(worker.run, task, temperature, proposals) for worker in workers]
            for future in running:
                future.result()
            pace = CHUNK_SECONDS / max(time.perf_counter() - began, 1e-6)
            proposals = max(1, int(proposals * min(pace, 2.0)))
            for worker in workers:
                _take(incumbent, worker.chain)
            if spent * REPORTS >= reports:
                reports = int(spent * REPORTS) + 1
                incumbent.progress(
                    f"search in {problem.num_groups} groups: {spent:.0%}, "
                    f"best {format_seconds(incumbent.step_time)}"
                )


def unguided(problem: PlacementProblem) -> CompiledPolicy:
    """What stands for a policy where there is none."""
    table, row = np.zeros((0, 0), dtype=np.float32), np.zeros(0, dtype=np.float32)
    weights = Weights(table, table, table, row, table, row, row)
    return CompiledPolicy(group_index(problem), weights, table)


def _take(incumbent: Incumbent, chain: Chain) -> None:
    """Offers what a chain has found since the last time."""
    count = int(chain.numbers[EVALUATIONS])
    chain.numbers[EVALUATIONS] = 0
    if chain.numbers[BEST_RANK] < rank(incumbent.step_time, _over(incumbent)):
        fits = bool((chain.best_peak <= incumbent.problem.memory_limit).all())
        outcomes = Outcomes(
            step_time=np.array([chain.numbers[BEST_STEP_TIME]]),
            peak_memory=chain.best_peak[None].copy(),
            group_start=np.empty((1, 0)),
            feasible=np.array([fits]),
        )
        incumbent.take(chain.best[None], outcomes)
        count -= 1
    incumbent.evaluations += count


def _worker(incumbent: Incumbent, task: ChainTask, rng: np.random.Generator) -> ChainWorker:
    present, peak = _best(incumbent)
    cost = _cost(incumbent, task.scale)
    chain = new_chain(present, peak, incumbent.step_time, cost, _over(incumbent))
    return ChainWorker(chain, buffers(task.compiled, 2), rng)


def _best(incumbent: Incumbent) -> tuple[Ints, Ints]:
    """The best placement so far and its peak memory."""
    assert incumbent.devices is not None and incumbent.peak_memory is not None
    return incumbent.devices, incumbent.peak_memory


def _over(incumbent: Incumbent) -> float:
    """Bytes by which the best placement so far exceeds the devices' memory, in all."""
    _, peak = _best(incumbent)
    return float(overflow(incumbent.problem, peak))


def _cost(incumbent: Incumbent, scale: float) -> float:
    _, peak = _best(incumbent)
    costs = search_costs(incumbent.problem, np.float64(incumbent.step_time), peak, scale)
    return float(costs)
