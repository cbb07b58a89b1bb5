"""Trained policies on a problem, as they are and trained further; policies are made by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, place, simulate
from placeto.envs import generator
from placeto.envs.features.groups import group_graph
from placeto.models.placeto.network import PlacetoPolicy
from placeto.models.placeto.settings import PlacetoConfig, PlacetoNetworkConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.models.stored import Trained
from placeto.placers.trained import place_fine_tuned, place_from_scratch, place_zero_shot
from placeto.search.coarser import coarser
from placeto.search.incumbent import Incumbent
from placeto.search.policy import offer_greedy
from placeto.support.errors import NotApplicable
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


def test_one_of_the_samples_is_greedy(played):
    place_zero_shot(Incumbent(generator.unequal(), math.inf), TO_THE_FAST_DEVICE, 0, samples=16)
    assert played == [(1, True), (15, False)]


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


def test_fine_tuning_starts_from_the_policy_and_follows_its_schedules(monkeypatch):
    progresses = []
    original = Trainer.step

    def step(self, progress=None):
        progresses.append(progress)
        if len(progresses) == 1:
            own, given = self.policy.state_dict(), TO_THE_FAST_DEVICE.policy.state_dict()
            assert all(torch.equal(own[name], given[name]) for name in given)
        return original(self, progress)

    monkeypatch.setattr(Trainer, "step", step)
    incumbent = Incumbent(generator.unequal(), math.inf)
    place_fine_tuned(incumbent, TO_THE_FAST_DEVICE, seed=0, placements=16)
    assert progresses == [0, 0.25, 0.5, 0.75]


def test_a_policy_of_another_size():
    trained = replace(TO_THE_FAST_DEVICE, config=replace(CONFIG, width=8))
    says = "the policy is made for width = 4, but unequal on toy needs width = 8"
    with pytest.raises(PlacetoError, match=says):
        place_zero_shot(Incumbent(generator.unequal(), math.inf), trained, 0)


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


def test_samples_of_a_policy_that_guides(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "placeto.placers.trained.offer_drawn",
        lambda incumbent, ready, starts, rng, draws=(1.0,): asked.append(
            (starts.tolist(), draws, rng.integers(100))
        ),
    )
    problem = generator.unequal()
    for seed in (1, 1, 2):
        place_zero_shot(Incumbent(problem, math.inf), pairwise(), seed, samples=16)
    place_zero_shot(Incumbent(problem, math.inf), pairwise(), 1)
    # From the fast device, the best of one.
    assert [call[:2] for call in asked] == [([[1, 1, 1, 1]] * 15, (1.0,))] * 3
    assert asked[0] == asked[1] != asked[2]
    asked.clear()
    for samples in (6, 1):
        place_zero_shot(Incumbent(problem, math.inf), pairwise(), 1, samples, refined=True)
    [(starts, draws, _)] = asked
    assert draws == (1.0, 0.5, 0.25, 0.0)
    assert len(starts) == 5
    assert starts[::2] == [[1, 1, 1, 1]] * 3
    assert starts[1] != starts[3]


def test_further_sweeps_are_of_policies_that_guide():
    with pytest.raises(
        NotApplicable, match="further sweeps refine what a policy finds that guides"
    ):
        place_zero_shot(
            Incumbent(generator.unequal(), math.inf), TO_THE_FAST_DEVICE, 0, 2, refined=True
        )


def test_a_policy_that_guides_is_fine_tuned_and_is_no_worse_for_it(played):
    trained = pairwise()
    zero_shot = Incumbent(generator.diamond(), math.inf)
    place_zero_shot(zero_shot, trained, seed=0)
    tuned = Incumbent(generator.diamond(), math.inf)
    place_fine_tuned(tuned, trained, seed=0, placements=8)
    assert played == [(4, False)] * 2
    assert tuned.step_time <= zero_shot.step_time
    assert tuned.evaluations > zero_shot.evaluations


@pytest.mark.parametrize("fresh", [False, True])
def test_a_policy_that_guides_is_trained_with_few_groups_and_refines_the_best_of_them(
    monkeypatch, fresh
):
    sizes, kept = [], []
    original = Trainer.roll_out

    def roll_out(self, index, *, episodes, **keywords):
        sizes.append(self.problems[index].num_groups)
        return original(self, index, episodes=episodes, **keywords)

    monkeypatch.setattr(Trainer, "roll_out", roll_out)

    def offered(incumbent, ready, start):
        kept.append((incumbent, ready, start))
        return offer_greedy(incumbent, ready, start)

    monkeypatch.setattr("placeto.search.policy.offer_greedy", offered)  # what refines
    trained = pairwise()
    incumbent = Incumbent(MANY_GROUPS, math.inf)
    if fresh:
        tuned = place_from_scratch(incumbent, trained.config, seed=0, placements=8)
    else:
        tuned = place_fine_tuned(incumbent, trained, seed=0, placements=8)
    assert sizes == [128] * 2
    finer, ready, start = kept[-1]
    assert finer is incumbent
    # Groups that were placed together, by the policy as it is after the training.
    joined = coarser(MANY_GROUPS, 128)[1]
    assert all(len(set(start[joined == group])) == 1 for group in range(128))
    table = tuned.policy.embed(group_graph(MANY_GROUPS)).detach().numpy()
    assert np.array_equal(ready.table, table)
    assert simulate(MANY_GROUPS, start).step_time >= incumbent.step_time
