"""Trained policies on a problem, as they are and trained further; policies are made by hand."""

import math

import pytest
import torch

from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.envs import generator
from placeto.models.placeto.network import PlacetoPolicy
from placeto.models.placeto.settings import PlacetoConfig, PlacetoNetworkConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.models.stored import Trained
from placeto.placers.learned import place_fine_tuned, place_from_scratch, place_zero_shot
from placeto.search.incumbent import Incumbent
from placeto.training import save_policy
from placeto.training.trainer import Trainer
from tests.training.test_validation import policy_that

CONFIG = Placeto2019Config(episodes=4, rounds=1, width=4, keep=0.0)
TO_THE_FAST_DEVICE = Trained(policy_that(1), CONFIG, {})


def pairwise():
    """A policy that is not indifferent."""
    torch.manual_seed(3)
    config = PlacetoConfig(hidden=8, embedding=2, width=4, rounds=1, episodes=4)
    policy = PlacetoPolicy(PlacetoNetworkConfig(hidden=8, embedding=2, width=4, rounds=1))
    torch.nn.init.normal_(policy.last.weight)
    return Trained(policy, config, {})


@pytest.fixture
def played(monkeypatch):
    """Episodes and greediness of every roll-out."""
    calls = []
    original = Trainer.roll_out

    def roll_out(self, index, *, episodes, greedy=False, **keywords):
        calls.append((episodes, greedy))
        return original(self, index, episodes=episodes, greedy=greedy, **keywords)

    monkeypatch.setattr(Trainer, "roll_out", roll_out)
    return calls


def test_greedy_by_hand():
    # From the slow device the ops go to the fast one in turn: 40, 36, 26, 16, 20 ms.
    incumbent = Incumbent(generator.unequal(), math.inf)
    place_zero_shot(incumbent, TO_THE_FAST_DEVICE, seed=0)
    assert incumbent.step_time == pytest.approx(16e-3)
    assert incumbent.evaluations == 5
    assert incumbent.devices.tolist() == [1, 1, 1, 0]


def test_as_many_placements_as_asked_for_and_whole_updates(played):
    incumbent = Incumbent(generator.unequal(), math.inf)
    before = {k: v.clone() for k, v in TO_THE_FAST_DEVICE.policy.state_dict().items()}
    tuned = place_fine_tuned(incumbent, TO_THE_FAST_DEVICE, seed=0, placements=10)
    assert played == [(1, True), (4, False), (4, False), (4, False), (1, True)]
    after = TO_THE_FAST_DEVICE.policy.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    own = tuned.policy.state_dict()
    assert not all(torch.equal(before[name], own[name]) for name in before)
    played.clear()
    place_from_scratch(incumbent, CONFIG, seed=0, placements=8)
    assert played == [(4, False), (4, False), (1, True)]


MANY_GROUPS = PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 200)


@pytest.mark.parametrize("samples", [0, 3])
@pytest.mark.parametrize("problem", [generator.unequal(), generator.diamond(), MANY_GROUPS])
def test_a_policy_that_guides_does_what_its_placer_does(tmp_path, problem, samples):
    trained = pairwise()
    save_policy(tmp_path, trained.policy, {})
    incumbent = Incumbent(problem, math.inf)
    place_zero_shot(incumbent, trained, 0, 1 + samples, refined=True)
    settings = {"policy": str(tmp_path), "samples": samples, "batches": 1}
    placed = place(problem, "placeto", seed=0, settings=settings)
    assert incumbent.step_time == placed.step_time
    assert incumbent.devices.tolist() == placed.devices.tolist()
    assert incumbent.evaluations == placed.evaluations


def test_a_policy_that_guides_is_fine_tuned_and_is_no_worse_for_it(played):
    trained = pairwise()
    zero_shot = Incumbent(generator.diamond(), math.inf)
    place_zero_shot(zero_shot, trained, seed=0)
    tuned = Incumbent(generator.diamond(), math.inf)
    place_fine_tuned(tuned, trained, seed=0, placements=8)
    assert played == [(4, False)] * 2
    assert tuned.step_time <= zero_shot.step_time
    assert tuned.evaluations > zero_shot.evaluations
