"""The placer as a whole: its parts, its budget, what it says."""

from dataclasses import replace
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, place, simulate
from placeto.envs import generator
from placeto.placers import Incumbent
from placeto.search import auto as module
from placeto.search import chains as search
from placeto.search.auto import prepare
from placeto.search.chains import BEST_STEP_TIME
from placeto.search.settings import SearchConfig
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import examples, pinned

PARTS = ("single", "expert", "etf", "heft")


def found(problem, evaluations, seed=0, **settings):
    incumbent = Incumbent(problem, budget_seconds=1e9)
    config = SearchConfig(max_evaluations=evaluations, **settings)
    module.search(incumbent, np.random.default_rng(seed), config)
    return incumbent


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 32)


@pytest.mark.parametrize(
    ("toy", "best"),
    [(generator.fork, 30e-3), (generator.diamond, 41e-3), (generator.unequal, 16e-3)],
)
@pytest.mark.parametrize("policy", ["placeto", "none"])
def test_finds_the_best_placement_of_every_toy(toy, best, policy):
    assert found(toy(), 300, policy=policy).step_time == pytest.approx(best)


@examples(20)
@given(
    problem=pinned(),
    evaluations=st.sampled_from([1, 40, 200]),
    policy=st.sampled_from(["placeto", "none"]),
    coarse_groups=st.sampled_from([1, 3, 128]),
)
def test_obeys_what_is_allowed_and_is_never_worse_than_a_part(
    problem, evaluations, policy, coarse_groups
):
    incumbent = found(problem, evaluations, policy=policy, coarse_groups=coarse_groups)
    assert problem.allowed[np.arange(problem.num_groups), incumbent.devices].all()
    schedule = simulate(problem, incumbent.devices)
    assert incumbent.step_time == schedule.step_time
    assert incumbent.peak_memory.tolist() == schedule.peak_memory.tolist()
    assert incumbent.feasible == schedule.feasible
    if evaluations == 1:
        return
    for method in PARTS:
        part = place(problem, method)
        assert incumbent.feasible >= part.feasible
        if incumbent.feasible and part.feasible:
            assert incumbent.step_time <= part.step_time


def test_the_usual_policy_is_for_steps_of_one_microbatch(nmt):
    graph = load_graph("nmt_small_m8")
    pipelined = PlacementProblem(graph, load_cluster("k80x4"), 48, order="eager-1f1b")
    for problem, same, other in ((nmt, "placeto", "none"), (pipelined, "none", "placeto")):
        usual, named, third = (
            found(problem, 1000, policy=policy, samples=1) for policy in ("usual", same, other)
        )
        assert (usual.best == named.best).all()
        assert usual.evaluations == named.evaluations
        # Not by chance alike: otherwise it goes other ways.
        assert (usual.best != third.best).any()


def test_says_which_part_found_the_best(nmt):
    first = make_problem(make_graph({"a": 1.0, "b": 1.0}, [("a", 9, ["b"])]), make_cluster(2))
    assert found(first, 200).found_by == "single"  # nothing is faster than one device
    split = make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(2))
    assert found(split, 200).found_by == "expert"  # one each, and the first to do so
    assert found(nmt, 1000).found_by == "search"
    limited = {"max_evaluations": 50}
    assert place(split, "auto", budget_seconds=60, settings=limited).found_by == "expert"
    assert place(split, "etf").found_by == "etf"


@pytest.mark.parametrize(
    "problem",
    [
        make_problem(make_graph({"a": 1.0}), make_cluster(1)),
        make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(1)),
        PlacementProblem(
            make_graph({"a": 1.0, "b": 1.0}), make_cluster(2), "none", pins={0: 1, 1: 0}
        ),
    ],
    ids=["one op", "one device", "all pinned"],
)
def test_ends_at_once_where_nothing_is_left_to_choose(problem):
    # It would not end otherwise.
    assert place(problem, "auto", budget_seconds=1e9, settings={"samples": 2}).evaluations < 20


def test_the_seed_decides_and_the_number_of_threads_does_not(nmt):
    threads, runs = numba.config.NUMBA_NUM_THREADS, []
    for count, seed in ((1, 3), (threads, 3), (threads, 4)):
        numba.set_num_threads(count)
        runs.append(found(nmt, 600, seed))
    assert runs[0].devices.tolist() == runs[1].devices.tolist()
    assert runs[0].evaluations == runs[1].evaluations
    assert runs[0].devices.tolist() != runs[2].devices.tolist()


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_a_single_device_that_is_faster_alone_is_left_behind(nmt, share):
    even = found(nmt, 2000)
    single = place(nmt, "single").step_time
    alone = {"k80": {"alone": even.step_time / single / share}}
    graph = replace(nmt.graph, meta={**nmt.graph.meta, "costs": {"kinds": alone}})
    problem = PlacementProblem(graph, nmt.cluster, 32)
    # Any move of few groups from a single device costs more than all that there is to gain.
    incumbent = found(problem, 2000)
    assert simulate(problem, incumbent.devices).step_time == incumbent.step_time
    assert incumbent.evaluations in (2000, 2001)  # each of two chains may have the last one
    if share == 1:  # what launches take stays, so that the search's is better
        assert incumbent.found_by == "search"
        assert incumbent.step_time < 1.005 * even.step_time
    else:
        assert incumbent.step_time == place(problem, "single").step_time < even.step_time
    # What is refined is the one that is given.
    start = even.devices
    assert place(problem, "auto", 60, settings={"max_evaluations": 50}, start=start).step_time <= (
        simulate(problem, start).step_time
    )


def test_it_goes_on_from_a_placement_that_is_given(nmt):
    limited = {"max_evaluations": 400}
    first = place(nmt, "auto", 60, settings=limited)
    for method in ("auto", "annealing"):
        found = place(nmt, method, 60, settings=limited, start=first.devices)
        assert found.trace[0][0] == 1
        assert found.trace[0][2] == first.step_time
        assert found.step_time < first.step_time  # there is more to be found
        assert found.found_by == "search"
    # Whatever finds nothing better keeps it.
    kept = place(nmt, "single", start=first.devices)
    assert (kept.found_by, kept.step_time) == ("start", first.step_time)


def test_what_is_refined_begins_with_no_heuristic_and_no_coarser_groups(nmt, monkeypatch):
    monkeypatch.setattr(module, "offer_starts", lambda *_, **__: pytest.fail("a heuristic"))
    monkeypatch.setattr(module, "coarser_incumbent", lambda *_: pytest.fail("coarser groups"))
    start = np.arange(nmt.num_groups) % 4
    settings = {"max_evaluations": 100, "coarse_groups": 8}
    assert (
        place(nmt, "auto", 60, settings=settings, start=start).step_time
        <= simulate(nmt, start).step_time
    )


@pytest.mark.parametrize("coarse_groups", [8, 128])
def test_the_number_of_placements_is_obeyed(nmt, coarse_groups):
    incumbent = found(nmt, 1000, coarse_groups=coarse_groups)
    assert incumbent.evaluations in range(1000, 1004)
    counts, seconds, step_times = zip(*incumbent.trace, strict=True)
    assert list(counts) == sorted(counts)
    assert counts[-1] <= incumbent.evaluations
    assert list(seconds) == sorted(seconds)
    assert list(step_times) == sorted(step_times, reverse=True)


def test_many_groups_are_first_placed_several_together(nmt, monkeypatch):
    searched = []

    def anneal(incumbent, rng, config, original=module.anneal):
        searched.append((incumbent.problem.num_groups, config.first_temperature))
        original(incumbent, rng, config)

    monkeypatch.setattr(module, "anneal", anneal)
    settings = {"first_temperature": 0.03, "refining_temperature": 0.01}
    found(nmt, 1000, coarse_groups=8, coarse_ratio=4, **settings)
    found(nmt, 1000, coarse_groups=8, coarse_ratio=2.5, **settings)
    found(nmt, 1000, coarse_groups=32, **settings)
    assert searched[:2] == [(8, 0.03), (32, 0.01)]
    assert searched[2:5] == [(8, 0.03), (12, 0.01), (32, 0.01)]
    assert searched[5:] == [(32, 0.03)]


@pytest.mark.parametrize("chunks", [0, 1, 4])
def test_an_interrupt_leaves_the_best_placement_so_far(nmt, monkeypatch, chunks):
    best = []

    def interrupted(task, chain, *rest, original=search.run_chain):
        if len(best) == chunks:
            raise KeyboardInterrupt
        original(task, chain, *rest)
        best.append(chain.numbers[BEST_STEP_TIME])

    prepare("step-time")  # which no test is to interrupt
    monkeypatch.setattr(search, "run_chain", interrupted)
    placement = place(nmt, "auto", budget_seconds=60, settings={"chains": 1, "policy": "none"})
    assert placement.interrupted
    starts = [place(nmt, method).step_time for method in PARTS]
    assert placement.step_time == min([*best, *starts])


@examples(10)
@given(seed=st.integers(0, 1000))
def test_leaves_what_does_not_fit(seed):
    # Twelve ops of 1 s and 10 bytes on three devices with room for four each: only 4 + 4 + 4 fits.
    names = [f"op{number}" for number in range(12)]
    graph = make_graph(dict.fromkeys(names, 1.0), param_bytes=dict.fromkeys(names, 10))
    incumbent = found(make_problem(graph, make_cluster(3, memory=40)), 1000, seed)
    assert incumbent.feasible
    assert incumbent.step_time == 4.0


@examples(20)
@given(seed=st.integers(0, 1000), memory=st.sampled_from([25, 65, 85]))
def test_nothing_that_a_chain_has_met_is_better(seed, memory):
    # Ops in a row: fastest on one device, where they do not fit; of the cuts, short ones are best.
    sizes = [5, 1, 6, 2, 7, 3, 8]
    graph = make_graph(
        dict.fromkeys("abcdefgh", 1.0),
        [(a, size, [b]) for (a, b), size in zip(pairwise("abcdefgh"), sizes, strict=True)],
        param_bytes=dict.fromkeys("abcdefgh", 10),
    )
    problem = make_problem(graph, make_cluster(2, memory=memory))
    met = []

    def noted(task, chain, *rest, original=search.run_chain):
        original(task, chain, *rest)
        met.append(chain.present.copy())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "run_chain", noted)
        patch.setattr(search, "CHUNK", 1)
        incumbent = found(problem, 1500, seed, chains=1)
    outcomes = simulate_many(problem, np.array(met))
    over = np.maximum(outcomes.peak_memory - problem.memory_limit, 0).sum(axis=1)
    best = min(zip(over.tolist(), outcomes.step_time.tolist(), strict=True))
    excess = np.maximum(incumbent.peak_memory - problem.memory_limit, 0).sum()
    assert excess <= best[0]
    if excess == best[0] == 0:
        assert incumbent.step_time <= best[1]


def test_does_without_a_policy_where_none_ships(nmt, monkeypatch):
    def missing(source):
        raise PlacetoError(f"{source}: no such policy")

    monkeypatch.setattr(module, "stored", missing)
    said = []
    incumbent = Incumbent(nmt, 1e9, said.append)
    module.search(incumbent, np.random.default_rng(0), SearchConfig(max_evaluations=200))
    assert said[0] == "searching without a policy: placeto: no such policy"
    assert incumbent.found_by == "search"
    with pytest.raises(PlacetoError, match="mine: no such policy"):
        found(nmt, 200, policy="mine")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chains": -1}, "chains is -1"),
        ({"max_evaluations": 0}, "max_evaluations is 0"),
        ({"first_temperature": 1e-4}, "temperatures fall from 0.0001 and 0.001 to 0.0003"),
        ({"coarse_groups": 0}, "coarse_groups is 0"),
        ({"coarse_share": 1.0}, "coarse_share is 1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(nmt, settings, message):
    with pytest.raises(PlacetoError, match=message):
        place(nmt, "auto", settings=settings)
