"""The placer `placeto`, with policies that were never trained."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacetoError, load_cluster, load_graph, simulate
from placeto.envs import generator
from placeto.heuristics.initial import all_on
from placeto.models.stored import load_policy, save_policy
from placeto.placers import Incumbent, learned
from placeto.placers import placeto as placer
from placeto.placers.configs import PlacetoPlacerConfig
from placeto.problem import PlacementProblem
from placeto.search import policy as playing
from placeto.search.policy import compiled_policy, disturbed, offer_greedy, scattered, stored
from placeto.simulation import simulate_many
from placeto.training import Trainer
from tests.builders import make_cluster, make_graph, make_problem
from tests.models.placeto.pairs import drawn_policy
from tests.strategies import examples, pinned


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    save_policy(folder, drawn_policy(), {})
    return str(folder)


def placed(problem, config, seed=0, budget=1e9, **options):
    incumbent = Incumbent(problem, budget, **options)
    placer.place_placeto(incumbent, np.random.default_rng(seed), config)
    return incumbent


@examples(20)
@given(
    problem=pinned(max_ops=16), samples=st.integers(0, 3), coarse_groups=st.sampled_from([3, 128])
)
def test_allowed_and_never_worse_than_one_device(policy, problem, samples, coarse_groups):
    config = PlacetoPlacerConfig(policy, samples, 2, coarse_groups)
    found = placed(problem, config)
    assert problem.allowed[np.arange(problem.num_groups), found.devices].all()
    for group, device in problem.pins.items():
        assert found.devices[group] == device
    schedule = simulate(problem, found.devices)
    assert found.step_time == schedule.step_time
    assert found.feasible == schedule.feasible
    singles = np.array([all_on(problem, device) for device in range(problem.num_devices)])
    outcomes = simulate_many(problem, singles)
    if outcomes.feasible.any():
        assert found.feasible
        assert found.step_time <= outcomes.step_time[outcomes.feasible].min()
    again = placed(problem, config)
    assert again.devices.tolist() == found.devices.tolist()
    assert again.evaluations == found.evaluations


def test_the_seed_decides_what_is_drawn(policy):
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 30)
    config = PlacetoPlacerConfig(policy, samples=4, batches=2)
    first, same, other = (placed(problem, config, seed) for seed in (0, 0, 1))
    assert first.devices.tolist() == same.devices.tolist()
    assert [entry[::2] for entry in first.trace] == [entry[::2] for entry in same.trace]
    assert [entry[::2] for entry in first.trace] != [entry[::2] for entry in other.trace]


def test_what_does_not_fit_on_one_device_is_split(policy):
    names = [f"op{number}" for number in range(4)]
    graph = make_graph(dict.fromkeys(names, 1.0), param_bytes=dict.fromkeys(names, 10))
    problem = make_problem(graph, make_cluster(2, memory=20))
    assert not simulate(problem, all_on(problem, 0)).feasible
    assert placed(problem, PlacetoPlacerConfig(policy, samples=8, batches=4)).feasible


def test_nothing_more_is_drawn_once_the_budget_is_spent(policy):
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock, said = Clock(), []

    def progress(message):
        said.append(message)
        clock.now += 1.0

    config = PlacetoPlacerConfig(policy, samples=2, fine_tune=0)
    found = placed(generator.diamond(), config, budget=2.5, clock=clock, progress=progress)
    assert len(said) == 3
    assert found.step_time <= 60e-3


@pytest.mark.parametrize("start", [0, 1, 2])
def test_greedy_sweeps_end_where_they_no_longer_improve(policy, monkeypatch, start):
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 30)
    sweeps, original = [], playing.play

    def play(problem, ready, start, noise, **options):
        sweeps.append((start, original(problem, ready, start, noise, **options)))
        return sweeps[-1][1]

    monkeypatch.setattr(playing, "play", play)
    incumbent = Incumbent(problem, 1e9)
    offer_greedy(incumbent, compiled_policy(stored(policy), problem), all_on(problem, start))
    costs = [float(played.best_cost[0]) for _, played in sweeps]
    assert len(costs) >= 2
    assert all(later < earlier for earlier, later in itertools.pairwise(costs[:-1]))
    assert costs[-1] >= costs[-2], "the last one is the first that improves nothing"
    for (_, before), (begins, _) in itertools.pairwise(sweeps):
        assert begins.tolist() == before.best.tolist()
    assert incumbent.step_time == min(costs)


def test_evaluations_count_all_that_was_simulated(policy):
    problem = make_problem(make_graph({"a": 1.0}), make_cluster(1))
    found = placed(problem, PlacetoPlacerConfig(policy, samples=3, batches=2))
    # The one device; two greedy sweeps, the second to see that nothing improves; three episodes of
    # four sweeps, twice.
    assert found.evaluations == 1 + 2 + 2 * 3 * 4


def test_every_other_start_is_random():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 30)
    start = all_on(problem, 2)
    starts = scattered(problem, start, np.random.default_rng(0), 5)
    assert (starts[::2] == start).all()
    assert set(starts[1]) == set(starts[3]) == {0, 1, 2, 3}
    assert (starts[1] != starts[3]).any()


@given(problem=pinned(max_ops=200), samples=st.integers(1, 4), seed=st.integers(0, 9))
def test_a_stretch_is_moved_to_where_it_may_be(problem, samples, seed):
    start = problem.allowed.argmax(axis=1)
    rows, part = disturbed(problem, start, np.random.default_rng(seed), samples)
    assert rows.shape == (samples, problem.num_groups)
    assert problem.allowed[np.arange(problem.num_groups), rows].all()
    places = problem.group_position[part]
    assert (np.diff(places) == 1).all()
    moved = np.flatnonzero((rows != start).any(axis=0)[problem.group_order])
    if len(moved):
        assert moved[-1] - moved[0] < max(problem.num_groups // 60, 1)
        assert {max(moved[0] - 3, 0), min(moved[-1] + 3, problem.num_groups - 1)} <= {*places}


def test_a_stretch_goes_to_one_device_or_its_devices_change_places():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 100)
    start = np.random.default_rng(0).integers(4, size=problem.num_groups)
    (one, swapped), _ = disturbed(problem, start, np.random.default_rng(3), 2)
    assert len(set(one[one != start])) == 1
    pairs = set(zip(start[swapped != start], swapped[swapped != start], strict=True))
    assert 0 < len(pairs) == len({before for before, _ in pairs}) == len({now for _, now in pairs})


def test_training_begins_with_the_policy_and_changes_it(monkeypatch):
    """In turn from the best device and the best placement; what it plays is offered."""
    seen, tried, local = [], [], playing.offer_disturbed

    def offer_disturbed(incumbent, *more):
        before = incumbent.evaluations
        local(incumbent, *more)
        tried.append(incumbent.evaluations - before)

    class Training(Trainer):
        def step(self, progress=None):
            weights = {name: t.clone() for name, t in self.policy.state_dict().items()}
            seen.append((weights, self._starts[0].copy()))
            return super().step(progress)

    monkeypatch.setattr(learned, "Trainer", Training)
    monkeypatch.setattr(playing, "offer_disturbed", offer_disturbed)
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 30)
    ticks = itertools.count()
    config = PlacetoPlacerConfig(fine_tune=1.0)
    found = placed(problem, config, budget=400.0, clock=lambda: float(next(ticks)))
    shipped = load_policy("placeto").state_dict()
    assert all((seen[0][0][name] == shipped[name]).all() for name in shipped)
    assert any((seen[1][0][name] != shipped[name]).any() for name in shipped)
    single = all_on(problem, 0)
    assert len(seen) > 2 * placer.UPDATES_A_START
    for number, (_, start) in enumerate(seen):
        later = number // placer.UPDATES_A_START % 2 == 1
        assert (start == single).all() != later
    assert found.evaluations > 30 * 16
    assert max(tried) > placer.DISTURBED  # sweeps went on from where they began


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"samples": -1}, "samples is -1, expected 0 or more"),
        ({"batches": -2}, "batches is -2, expected 0 or more"),
        ({"coarse_groups": 0}, "coarse_groups is 0, expected 1 or more"),
        ({"fine_tune": 1.5}, "fine_tune is 1.5, expected from 0 to 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected more than 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, expected):
    with pytest.raises(PlacetoError, match=expected):
        PlacetoPlacerConfig(**wrong)


def test_pipelined_steps_have_a_policy_of_their_own():
    clusters = load_cluster("k80x2")
    for graph, order, same, other in (
        ("nmt_small", "fifo", "placeto", "placeto-pipelined"),
        ("nmt_small_m8", "eager-1f1b", "placeto-pipelined", "placeto"),
    ):
        problem = PlacementProblem(load_graph(graph), clusters, 24, order=order)
        usual, named, third = (
            placed(problem, PlacetoPlacerConfig(policy=name, decoding="greedy"))
            for name in ("usual", same, other)
        )
        assert (usual.best == named.best).all()
        assert (usual.best != third.best).any()
