"""The one registry of placers, and `place`."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeto.errors import PlacetoError
from placeto.placement import Placement
from placeto.placers.annealing import place_annealing
from placeto.placers.baechi import place_m_etf, place_m_sct, place_m_topo
from placeto.placers.base import Incumbent, NotApplicable, Progress, silent
from placeto.placers.etf import place_etf
from placeto.placers.expert import place_expert
from placeto.placers.heft import place_heft
from placeto.placers.metis import place_metis
from placeto.placers.scotch import place_mincut, place_scotch
from placeto.placers.single import place_cpu, place_random, place_single
from placeto.problem import PlacementProblem


@dataclass(frozen=True)
class Placer:
    """An entry of the registry.

    Attributes:
        name: what `--method` calls it.
        summary: one line for `placeto list`.
        run: offers placements to an incumbent until it is done or the budget is spent; all its
            random numbers come from the generator.
        anytime: whether it uses the whole budget; else it ends by itself.
    """

    name: str
    summary: str
    run: Callable[[Incumbent, np.random.Generator], None]
    anytime: bool = False


def _place_placeto(incumbent: Incumbent, rng: np.random.Generator) -> None:
    from placeto.placers.placeto import place_placeto  # torch is slow to import

    place_placeto(incumbent, rng)


def _place_colocrl(incumbent: Incumbent, rng: np.random.Generator) -> None:
    from placeto.placers.colocrl import place_colocrl  # torch is slow to import

    place_colocrl(incumbent, rng)


def _place_hierarchical(incumbent: Incumbent, rng: np.random.Generator) -> None:
    from placeto.placers.hierarchical import place_hierarchical  # torch is slow to import

    place_hierarchical(incumbent, rng)


def _place_exact(incumbent: Incumbent, rng: np.random.Generator) -> None:
    try:
        from placeto.placers.exact import place_exact  # ortools is slow to import
    except ModuleNotFoundError as error:
        raise NotApplicable(
            f"exact needs OR-tools ({error}); pip install 'placeto[solvers]'"
        ) from error
    place_exact(incumbent, rng)


PLACERS: dict[str, Placer] = {
    placer.name: placer
    for placer in (
        Placer("single", "the best single device", place_single),
        Placer("cpu", "the best device of kind cpu", place_cpu),
        Placer("random", "the best of 100 random placements", place_random),
        Placer("expert", "blocks for vision models, layers for sequence models", place_expert),
        Placer("scotch", "Scotch's static mapping onto all devices", place_scotch),
        Placer("mincut", "Scotch's static mapping onto all but the CPUs", place_mincut),
        Placer("metis", "partitioning by METIS, a part for each device", place_metis),
        Placer("etf", "earliest finish under memory limits", place_etf),
        Placer("heft", "earliest finish by upward rank (Topcuoglu et al. 2002)", place_heft),
        Placer("m-topo", "devices filled in topological order (Baechi)", place_m_topo),
        Placer("m-etf", "the group that can start first, again and again (Baechi)", place_m_etf),
        Placer("m-sct", "m-ETF that waits for favourite children (Baechi)", place_m_sct),
        Placer("exact", "the best of all, proven, of up to 40 groups", _place_exact, anytime=True),
        Placer("annealing", "simulated annealing of many moves", place_annealing, anytime=True),
        Placer(
            "colocrl",
            "a sequence-to-sequence network trained on the graph (Mirhoseini et al. 2017)",
            _place_colocrl,
            anytime=True,
        ),
        Placer(
            "hierarchical",
            "a grouper and a placer trained on the graph (Mirhoseini et al. 2018)",
            _place_hierarchical,
            anytime=True,
        ),
        Placer(
            "placeto",
            "an agent trained on the graph by REINFORCE (Addanki et al. 2019)",
            _place_placeto,
            anytime=True,
        ),
    )
}


def find_placer(method: str) -> Placer:
    """The placer of a name.

    Raises:
        PlacetoError: there is none.
    """
    if method not in PLACERS:
        close = difflib.get_close_matches(method, PLACERS, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise PlacetoError(f"no placer is called {method!r}; {hint}placers: {', '.join(PLACERS)}")
    return PLACERS[method]


def place(
    problem: PlacementProblem,
    method: str = "placeto",
    budget_seconds: float = 30.0,
    seed: int = 0,
    progress: Progress = silent,
) -> Placement:
    """Finds a placement.

    Args:
        problem: the graph, its grouping and the cluster.
        method: a name of the registry.
        budget_seconds: wall-clock seconds of search or training.
        seed: where the placer's random numbers start.
        progress: told of what is going on, in single lines.

    Returns:
        The best placement that the placer offered. It is not `feasible` if the placer found none
        that fits in memory. After an interrupt (Ctrl-C) it is the best until then.

    Raises:
        PlacetoError: no such method, or a method that does not apply to the problem.
    """
    placer = find_placer(method)
    if not budget_seconds > 0:
        raise PlacetoError(f"budget is {budget_seconds} seconds, expected more than 0")
    if seed < 0:
        raise PlacetoError(f"seed is {seed}, expected a whole number from 0")
    incumbent = Incumbent(problem, budget_seconds, progress)
    interrupted = False
    try:
        placer.run(incumbent, np.random.default_rng(seed))
    except KeyboardInterrupt:
        if incumbent.devices is None:
            raise
        interrupted = True
        progress(f"{method}: interrupted; keeping the best placement so far")
    if incumbent.devices is None or incumbent.peak_memory is None:
        raise PlacetoError(
            f"{method}: the budget of {budget_seconds} s was too short for any placement"
        )
    return Placement(
        problem=problem,
        devices=incumbent.devices,
        step_time=incumbent.step_time,
        peak_memory=incumbent.peak_memory,
        feasible=incumbent.feasible,
        method=method,
        seed=seed,
        evaluations=incumbent.evaluations,
        wall_seconds=incumbent.seconds,
        interrupted=interrupted,
        lower_bound=incumbent.lower_bound,
        trace=tuple(incumbent.trace),
    )
