"""The placer `pairwise`, with policies that were never trained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeto import PlacetoError, load_cluster, load_graph, simulate
from placeto.envs import generator
from placeto.initial import all_on
from placeto.placers import Incumbent
from placeto.placers.configs import PairwisePlacerConfig
from placeto.placers.pairwise import guide, offer_greedy, place_pairwise, stored
from placeto.problem import PlacementProblem
from placeto.simulation import simulate_many
from placeto.training.checkpoint import save_policy
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import pinned
from tests.training.pairs import drawn_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    save_policy(folder, drawn_policy(), {})
    return str(folder)


def placed(problem, config, seed=0, budget=1e9, **options):
    incumbent = Incumbent(problem, budget, **options)
    place_pairwise(incumbent, np.random.default_rng(seed), config)
    return incumbent


@settings(max_examples=40)
@given(problem=pinned(max_ops=16), samples=st.integers(0, 3))
def test_allowed_and_never_worse_than_one_device(policy, problem, samples):
    found = placed(problem, PairwisePlacerConfig(policy, samples, batches=2))
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
    again = placed(problem, PairwisePlacerConfig(policy, samples, batches=2))
    assert again.devices.tolist() == found.devices.tolist()
    assert again.evaluations == found.evaluations


def test_the_seed_decides_what_is_drawn(policy):
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 30)
    config = PairwisePlacerConfig(policy, samples=4, batches=2)
    first, same, other = (placed(problem, config, seed) for seed in (0, 0, 1))
    assert first.devices.tolist() == same.devices.tolist()
    assert [entry[::2] for entry in first.trace] == [entry[::2] for entry in same.trace]
    assert [entry[::2] for entry in first.trace] != [entry[::2] for entry in other.trace]


def test_the_number_of_draws_is_as_told_however_slow_the_machine(policy, monkeypatch):
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 30)
    config = PairwisePlacerConfig(policy, samples=4, batches=2)
    usual = placed(problem, config)
    ticks = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    slow = placed(problem, config)
    assert slow.devices.tolist() == usual.devices.tolist()
    assert slow.evaluations == usual.evaluations


def test_what_does_not_fit_on_one_device_is_split(policy):
    names = [f"op{number}" for number in range(4)]
    graph = make_graph(dict.fromkeys(names, 1.0), param_bytes=dict.fromkeys(names, 10))
    problem = make_problem(graph, make_cluster(2, memory=20))
    assert not simulate(problem, all_on(problem, 0)).feasible
    assert placed(problem, PairwisePlacerConfig(policy, samples=8, batches=4)).feasible


def test_nothing_more_is_drawn_once_the_budget_is_spent(policy):
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock, said = Clock(), []

    def progress(message):
        said.append(message)
        clock.now += 1.0

    config = PairwisePlacerConfig(policy, samples=2)
    found = placed(generator.diamond(), config, budget=2.5, clock=clock, progress=progress)
    assert len(said) == 3
    assert found.step_time <= 60e-3


def test_greedy_sweeps_end_where_they_no_longer_improve(policy):
    problem = generator.diamond()
    ready = guide(problem, stored(policy))
    incumbent = Incumbent(problem, 1e9)
    offer_greedy(incumbent, ready, all_on(problem, 0))
    before = incumbent.step_time
    offer_greedy(incumbent, ready, incumbent.devices)
    assert incumbent.step_time <= before <= 60e-3
    assert incumbent.evaluations >= 2


def test_evaluations_count_all_that_was_simulated(policy):
    problem = make_problem(make_graph({"a": 1.0}), make_cluster(1))
    found = placed(problem, PairwisePlacerConfig(policy, samples=3, batches=2))
    # The one device; two greedy sweeps, the second to see that nothing improves; three draws twice.
    assert found.evaluations == 1 + 2 + 2 * 3


def test_no_such_policy():
    with pytest.raises(PlacetoError, match="no bundled policy"):
        placed(generator.diamond(), PairwisePlacerConfig("nothing"))


@pytest.mark.parametrize("wrong", [{"samples": -1}, {"batches": -2}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(PlacetoError, match=f"{next(iter(wrong))} is -"):
        PairwisePlacerConfig(**wrong)
