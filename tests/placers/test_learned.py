"""What holds for every placer that trains an agent."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, place, simulate
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.placers import PLACERS, Incumbent, learned
from placeto.placers.learned import for_few_groups
from placeto.training import Trainer
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.test_every_placer import pinned

AT_ONCE = ["colocrl", "hierarchical"]
METHODS = [*AT_ONCE, "placeto-2019"]


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24)


@given(problem=pinned(), method=st.sampled_from(METHODS))
@settings(max_examples=30)
def test_pins_and_kernels_are_obeyed(problem, method):
    placement = place(problem, method, budget_seconds=40, clock=itertools.count().__next__)
    assert problem.allowed[np.arange(problem.num_groups), placement.devices].all()
    for group, device in problem.pins.items():
        assert placement.devices[group] == device
    schedule = simulate(problem, placement.devices)
    assert placement.step_time == schedule.step_time
    assert placement.feasible == schedule.feasible


def counted(problem, method, seed, ticks):
    """What a placer finds by a clock that goes on by a second with every look at it."""
    incumbent = Incumbent(problem, ticks, clock=itertools.count().__next__)
    placer = PLACERS[method]
    placer.run(incumbent, np.random.default_rng(seed), placer.config.default)
    return incumbent


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_and_the_same_clock_give_the_same_placement(nmt, method):
    found = []
    for seed in (0, 0, 1):
        incumbent = counted(nmt, method, seed, 60)
        found.append((incumbent.devices.tolist(), incumbent.step_time, incumbent.evaluations))
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize("method", METHODS)
def test_the_learning_curve_has_a_point_an_update(nmt, method, monkeypatch):
    means, step = [], Trainer.step

    def noted(trainer, progress):
        report = step(trainer, progress)
        means.append(report.step_time)
        return report

    monkeypatch.setattr(Trainer, "step", noted)
    incumbent = counted(nmt, method, 0, 60)
    seconds, curve = zip(*incumbent.learning, strict=True)
    assert list(curve) == means
    assert all(0 < a < b < 60 for a, b in itertools.pairwise(seconds))


@pytest.mark.parametrize(
    ("method", "share"), [*((each, 0.8) for each in AT_ONCE), ("placeto-2019", 0.75)]
)
@pytest.mark.parametrize(("groups", "trainings"), [(31, 4), (32, 1)])
def test_of_few_groups_four_agents_are_trained_each_by_its_own_schedule(
    nmt, method, share, groups, trainings, monkeypatch
):
    problem = PlacementProblem(nmt.graph, nmt.cluster, groups)
    budget = 600
    incumbent = Incumbent(problem, budget, clock=itertools.count().__next__)
    made, steps = [], []

    class Noted(Trainer):
        def __init__(self, problems, config, *rest, **options):
            made.append((incumbent.seconds, config.seed))
            super().__init__(problems, config, *rest, **options)

        def step(self, progress):
            steps.append((len(made) - 1, incumbent.seconds, progress))
            return super().step(progress)

    monkeypatch.setattr(learned, "Trainer", Noted)
    placer = PLACERS[method]
    placer.run(incumbent, np.random.default_rng(0), placer.config.default)
    begins, seeds = zip(*made, strict=True)
    assert len(set(seeds)) == trainings
    ends = np.arange(1, trainings + 1) * budget / trainings
    np.testing.assert_allclose(begins, [0, *ends[:-1]], atol=50)
    for number, instant, progress in steps:
        over = (instant - begins[number]) / (share * (ends[number] - begins[number]))
        assert progress == pytest.approx(over, abs=0.1)
    assert [number for number, _, _ in steps].count(0) >= 2


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_too_short_for_anything_has_a_placement(nmt, method):
    placement = place(nmt, method, budget_seconds=1e-9)
    assert placement.evaluations > 0
    assert placement.devices.shape == (24,)


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_kept(method):
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"), 500)
    placement = place(problem, method, budget_seconds=1)
    assert placement.wall_seconds < 1 + 2
    assert placement.evaluations > 0


@pytest.mark.parametrize("method", METHODS)
def test_what_fits_nowhere_at_random_is_repaired(method):
    # 40 ops of one unit each, and room for 10 of them on each device.
    names = [f"op{op}" for op in range(40)]
    graph = make_graph(dict.fromkeys(names, 1.0), param_bytes=dict.fromkeys(names, 10))
    problem = make_problem(graph, make_cluster(4, memory=100))
    assert place(problem, method, budget_seconds=0.3).feasible


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("calls", [1, 7])
def test_an_interrupt_leaves_the_best_placement_so_far(nmt, method, monkeypatch, calls):
    best = []

    def interrupted(problem, many, original=learned.simulate_many):
        outcomes = original(problem, many)
        if len(best) == calls:
            raise KeyboardInterrupt
        best.append(outcomes.step_time[outcomes.feasible].min(initial=np.inf))
        return outcomes

    monkeypatch.setattr(learned, "simulate_many", interrupted)
    placement = place(nmt, method, budget_seconds=60)
    assert placement.interrupted
    offered_first = ("single", "expert", "etf") if method == "placeto-2019" else ()
    obvious = [place(nmt, other).step_time for other in offered_first]
    assert placement.step_time == min(*best, np.inf, *obvious)


@pytest.mark.parametrize("method", METHODS)
def test_too_many_groups_are_one_line_at_once(method):
    problem = make_problem(make_graph({f"op{op}": 1.0 for op in range(1025)}), make_cluster(2))
    with pytest.raises(PlacetoError, match="1025 groups are too many for an agent") as error:
        place(problem, method)
    assert "\n" not in str(error.value)


def test_of_few_groups_updates_have_more_episodes():
    config = HierarchicalConfig(
        episodes=10,
        baseline_episodes=15,
        learning_rate=0.5,
        final_learning_rate=0.25,
        entropy_bonus=3.0,
    )
    assert for_few_groups(config, 8, enough=32) == HierarchicalConfig(
        episodes=40,
        baseline_episodes=60,
        learning_rate=1.0,
        final_learning_rate=0.5,
        entropy_bonus=6.0,
    )
    for groups in (32, 500):
        assert for_few_groups(config, groups, enough=32) == config
