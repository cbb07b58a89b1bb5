"""The one registry of placers, and `place`."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from threading import Timer
from typing import Any

import numpy as np

from placeto.heuristics.table import HEURISTICS
from placeto.placement import Placement
from placeto.placers import configs
from placeto.placers.exact.branching import place_exact
from placeto.problem import Objective, PlacementProblem
from placeto.search.incumbent import Clock, Incumbent
from placeto.search.repair import offer_heuristic
from placeto.search.settings import SearchConfig
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.interrupts import interrupts
from placeto.support.progress import Progress, silent

SLOW_SECONDS = 3.0  # that preparing may take before it is told: what is read from a cache takes one
EVALUATIONS_OF_TEACHER = 2000


@dataclass(frozen=True)
class Placer:
    """An entry of the registry.

    Attributes:
        name: what `--method` calls it.
        summary: one line for `placeto list`.
        run: offers placements to an incumbent until it is done or the budget is spent; all its
            random numbers come from the generator. Its third argument is a configuration, if it
            has one.
        anytime: whether it uses the whole budget; else it ends by itself.
        config: its configuration, if it has one.
        prepare: compiles what it runs, if anything, before the budget begins: the first time after
            an installation that takes longer than many a budget. Takes the problem's objective
            and the configuration.
        policies: the agent whose policies it begins with, if it does with any.
    """

    name: str
    summary: str
    run: Callable[..., None]
    anytime: bool = False
    config: configs.Configurable | None = None
    prepare: Callable[..., None] | None = None
    policies: str | None = None


def _call(function: str, *arguments: Any, **options: Any) -> None:
    """Calls `module:function`, imported only by now: torch and numba's code take long to load."""
    resolve_name(f"placeto.{function}")(*arguments, **options)


def _prepare(objective: str, config: SearchConfig | configs.PlacetoPlacerConfig) -> None:
    learns = isinstance(config, configs.PlacetoPlacerConfig)
    _call("search.auto:prepare", "step-time" if learns else objective)
    if isinstance(config, configs.PlacetoPlacerConfig) and config.trains:
        _call("placers.placeto:prepare")


_anytime = partial(Placer, anytime=True)

PLACERS: dict[str, Placer] = {
    placer.name: placer
    for placer in (
        _anytime(
            "auto",
            "heuristics, then a trained policy, then a search from the best of both",
            partial(_call, "placers.auto:place_auto"),
            config=configs.AUTO,
            prepare=_prepare,
            policies="placeto",
        ),
        *(
            Placer(name, heuristic.summary, partial(offer_heuristic, name=name))
            for name, heuristic in HEURISTICS.items()
        ),
        _anytime("exact", "the best of all, proven, of up to 40 groups", place_exact),
        _anytime(
            "annealing",
            "the search of auto without policy and levels: simulated annealing of many moves",
            partial(_call, "search.auto:search"),
            config=configs.ANNEALING,
            prepare=_prepare,
        ),
        _anytime(
            "colocrl",
            "a sequence-to-sequence network trained on the graph (Mirhoseini et al. 2017)",
            partial(_call, "placers.learned:place_at_once", enough=32),
            config=configs.COLOCRL,
        ),
        _anytime(
            "hierarchical",
            "a grouper and a placer trained on the graph (Mirhoseini et al. 2018)",
            partial(_call, "placers.learned:place_at_once", enough=64),
            config=configs.HIERARCHICAL,
        ),
        _anytime(
            "placeto-2019",
            "an agent trained on the graph by REINFORCE (Addanki et al. 2019)",
            partial(_call, "placers.placeto_2019:place_placeto_2019"),
            config=configs.PLACETO_2019,
            policies="placeto-2019",
        ),
        _anytime(
            "placeto",
            "a policy trained beforehand on others, then trained further on the graph",
            partial(_call, "placers.placeto:place_placeto"),
            config=configs.PLACETO,
            prepare=_prepare,
            policies="placeto",
        ),
    )
}


def find_placer(method: str) -> Placer:
    """The placer of a name; `PlacetoError` if there is none."""
    if method not in PLACERS:
        raise PlacetoError(f"no placer is called {method!r}; placers: {', '.join(PLACERS)}")
    return PLACERS[method]


def with_policy() -> list[str]:
    """The placers that begin with a trained policy."""
    return [placer.name for placer in PLACERS.values() if placer.policies is not None]


def find_config(method: str) -> configs.Configurable:
    """The configuration of a placer; `PlacetoError` if there is none, or it has no settings."""
    config = find_placer(method).config
    if config is None:
        others = ", ".join(placer.name for placer in PLACERS.values() if placer.config is not None)
        raise PlacetoError(f"{method} has no settings; placers with settings: {others}")
    return config


def place(
    problem: PlacementProblem,
    method: str = "auto",
    budget_seconds: float = 30.0,
    seed: int = 0,
    progress: Progress = silent,
    settings: Mapping[str, object] | None = None,
    clock: Clock = time.monotonic,
    start: Ints | None = None,
) -> Placement:
    """Finds a placement.

    Args:
        problem: the graph, its grouping and the cluster.
        method: a name of the registry.
        budget_seconds: seconds of search or training.
        seed: where the placer's random numbers start.
        progress: told of what is going on, in single lines.
        settings: what to change in the placer's configuration, such as `{"passing": "none"}` of
            `placeto`; `PLACERS[method].config.settings` has all of them, with their defaults.
        clock: tells the seconds that the budget is of: the wall clock, or `time.process_time` for
            those of the processor, which other processes do not shorten.
        start: (num_groups,) a placement that is offered first. What `auto` and `annealing` find is
            near it: they begin with it instead of heuristics.

    Returns:
        The best placement that the placer offered. It is not `feasible` if the placer found none
        that fits in memory. After an interrupt (Ctrl-C) it is the best until then.

    Raises:
        PlacetoError: no such method or setting, or a method that does not apply to the problem.
    """
    placer = find_placer(method)
    if not isinstance(budget_seconds, int | float | np.number) or not budget_seconds > 0:
        raise PlacetoError(f"budget is {budget_seconds!r} seconds, expected more than 0")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise PlacetoError(f"seed is {seed!r}, expected a whole number from 0")
    settings = settings or {}
    config = find_config(method) if settings else placer.config
    arguments = () if config is None else (config.configured(settings),)
    prepare(method, problem.objective, settings, progress)
    incumbent = Incumbent(problem, budget_seconds, progress, clock)
    interrupted = False
    try:
        with interrupts():
            if start is not None:
                incumbent.part, incumbent.refines = "start", True
                incumbent.offer(start)
            placer.run(incumbent, np.random.default_rng(seed), *arguments)
    except KeyboardInterrupt:
        if incumbent.devices is None:
            raise
        interrupted = True
        progress(f"{method}: interrupted; keeping the best placement so far")
    if incumbent.devices is None:
        raise PlacetoError(
            f"{method}: the budget of {budget_seconds} s was too short for any placement"
        )
    return incumbent.placement(method, int(seed), settings, interrupted=interrupted)


def prepare(
    method: str,
    objective: Objective = "step-time",
    settings: Mapping[str, object] | None = None,
    progress: Progress = silent,
) -> None:
    """Compiles what a placer runs, or reads it from the cache; the progress is told if it is slow.

    Raises:
        PlacetoError: no such method or setting.
    """
    placer = find_placer(method)
    if placer.prepare is None:
        return
    assert placer.config is not None
    told = f"{method}: compiling, once after an installation; the budget begins after that"
    timer = Timer(SLOW_SECONDS, progress, (told,))
    timer.daemon = True
    timer.start()
    try:
        placer.prepare(objective, placer.config.configured(settings or {}))
    finally:
        timer.cancel()


def annealed(problem: PlacementProblem) -> Ints:
    """(num_groups,) devices that simulated annealing finds, for Placeto to imitate at first."""
    settings = {"max_evaluations": EVALUATIONS_OF_TEACHER}
    placement = place(problem, "annealing", math.inf, settings=settings)
    if placement.interrupted:
        raise KeyboardInterrupt  # half a search is no lesson
    return placement.devices
