"""Ways to decode a policy of Placeto's: what they offer, and when they end."""

import itertools

import numpy as np
import pytest

from placeto import PlacetoError, load_cluster, load_graph, place
from placeto.heuristics.initial import all_on
from placeto.models.stored import save_policy
from placeto.placers import Incumbent
from placeto.placers.configs import PlacetoPlacerConfig
from placeto.placers.placeto import place_placeto
from placeto.problem import PlacementProblem
from placeto.search import policy as playing
from placeto.search.decoding import DECODINGS, Case, Draws, exchanged
from placeto.search.policy import compiled_policy, offer_greedy, stored
from placeto.simulation import step_times
from tests.models.placeto.pairs import drawn_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    save_policy(folder, drawn_policy(), {})
    return str(folder)


@pytest.fixture(scope="module")
def problem():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 16)


def decoded(problem, policy, name, batches, seed=0, **draws):
    incumbent = Incumbent(problem, np.inf)
    single = all_on(problem, 0)
    incumbent.offer(single)
    ready = compiled_policy(stored(policy), problem)
    told = []
    drawn = Draws(samples=4, batches=batches, **draws)
    rng = np.random.default_rng(seed)

    def done():
        told.append(incumbent.step_time)

    DECODINGS[name](Case(incumbent, ready, single, rng, drawn, done))
    return incumbent, told


@pytest.mark.parametrize("name", DECODINGS)
def test_each_is_counted_seeded_and_told_of(policy, problem, name):
    found, told = decoded(problem, policy, name, 2)
    again, _ = decoded(problem, policy, name, 2)
    assert found.devices.tolist() == again.devices.tolist()
    assert found.evaluations == again.evaluations
    assert len(told) == 2 + (name == "mirrored")  # which begins with single devices
    assert told == sorted(told, reverse=True)
    assert found.step_time == step_times(problem, found.devices[None])[0]
    assert found.step_time <= step_times(problem, all_on(problem, 0)[None])[0]


@pytest.mark.parametrize("name", DECODINGS)
def test_none_goes_on_once_the_budget_is_spent(policy, problem, name):
    class Clock:
        now = 0.0

        def __call__(self):
            self.now += 1.0
            return self.now

    incumbent = Incumbent(problem, 40.0, clock=Clock())
    incumbent.offer(all_on(problem, 0))
    ready = compiled_policy(stored(policy), problem)
    told = []
    rng = np.random.default_rng(0)
    case = Case(incumbent, ready, all_on(problem, 0), rng, Draws(), lambda: told.append(1))
    DECODINGS[name](case)
    assert incumbent.expired
    assert len(told) < 40


def test_the_temperature_says_how_far_from_the_likeliest(policy, problem):
    greedy = Incumbent(problem, np.inf)
    ready, single = compiled_policy(stored(policy), problem), all_on(problem, 0)
    offer_greedy(greedy, ready, single)
    cold, _ = decoded(problem, policy, "sampling", 1, temperature=1e-9)
    hot, _ = decoded(problem, policy, "sampling", 1, temperature=1e9)
    # Four alike, one sweep of the greedy one's: it has seen no placement that that has not.
    assert cold.step_time >= greedy.step_time
    assert hot.devices.tolist() != cold.devices.tolist()


def test_a_beam_keeps_the_fastest_different_ones(policy, problem, monkeypatch):
    seen, original = [], playing.offer_played

    def offer_played(incumbent, ready, starts, noise, decided, part=None):
        played = original(incumbent, ready, starts, noise, decided, part)
        seen.append((starts, played))
        assert (noise[:, ::4] == 0).all(), "the first child of each is greedy"
        assert (noise[:, 1::4] != 0).all()
        return played

    monkeypatch.setattr(playing, "offer_played", offer_played)
    found, _ = decoded(problem, policy, "beam", 1)
    assert len(seen) == 16
    assert (seen[0][0] == all_on(problem, 0)).all()
    for (_, before), (starts, _) in itertools.pairwise(seen):
        parents = np.unique(starts, axis=0)
        assert len(parents) == len(starts) / 4 <= 4
        costs = {tuple(row): cost for row, cost in zip(before.best.tolist(), before.best_cost,
                                                        strict=True)}  # fmt: skip
        kept = sorted(costs[tuple(row)] for row in parents.tolist())
        assert kept == sorted(costs.values())[: len(kept)]
    assert found.step_time == min(played.best_cost.min() for _, played in seen)


def test_only_like_devices_are_exchanged():
    devices = load_cluster("p100x2-k80x2").devices
    rng = np.random.default_rng(0)
    found = {tuple(exchanged(devices, rng).tolist()) for _ in range(100)}
    assert len(found) == 4
    for order in found:
        assert [devices[each].kind for each in order] == [each.kind for each in devices]


def test_like_devices_with_like_channels_are_the_same_to_a_policy(policy):
    """What mirrored copies are played for ends in mirrored copies, and earns nothing."""
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 12)
    ready = compiled_policy(stored(policy), problem)
    rng = np.random.default_rng(0)
    start = rng.integers(0, 4, problem.num_groups)
    order = exchanged(problem.cluster.devices, rng)
    quiet = np.zeros((problem.num_groups, 1, 4))
    ends = []
    for devices in (start, order[start]):
        incumbent = Incumbent(problem, np.inf)
        played = playing.offer_played(incumbent, ready, devices[None], quiet, True)
        ends.append(played.best_cost[0])
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("name", ["greedy", *DECODINGS])
def test_the_placer_decodes_as_it_is_told(policy, problem, name):
    found = []
    for decoding in ("greedy", name):
        incumbent = Incumbent(problem, np.inf)
        config = PlacetoPlacerConfig(policy, batches=1, decoding=decoding)
        place_placeto(incumbent, np.random.default_rng(0), config)
        found.append(incumbent)
    greedy, other = found
    assert other.step_time <= greedy.step_time
    assert (other.evaluations > greedy.evaluations) == (name != "greedy")
    assert not other.learning


def test_only_an_active_search_trains():
    assert PlacetoPlacerConfig().trains
    for name in ("greedy", *DECODINGS):
        assert not PlacetoPlacerConfig(decoding=name).trains


def test_what_is_refused(problem):
    with pytest.raises(PlacetoError, match="temperature is 0, expected more than 0"):
        place(problem, "placeto", 1.0, settings={"temperature": 0})
    with pytest.raises(PlacetoError, match="decoding is 'best', expected greedy or sampling"):
        place(problem, "placeto", 1.0, settings={"decoding": "best"})
