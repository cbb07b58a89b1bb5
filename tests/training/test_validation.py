"""Which policy a run keeps: figures by hand, and runs that are stopped and continued."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from placeto.envs import generator
from placeto.models.placeto_2019.network import Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.problem import PlacementProblem
from placeto.simulation import simulate_many
from placeto.training import train
from placeto.training.run import Validation
from tests.training.test_run import (
    content,
    kills_survived,
    plain,
)

CONFIG = Placeto2019Config(
    updates=7, episodes=4, rounds=1, width=4, initial_placement="random", checkpoint_every=2
)
PROBLEMS = [generator.fork(), generator.diamond()]
OTHERS = [generator.unequal(), generator.chain()]


def policy_that(device):
    """A policy that sends every group to one device."""
    torch.manual_seed(0)
    policy = Placeto2019Policy(Placeto2019Shape(num_devices=2, rounds=1, width=4, keep=0.0))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        last = [p for p in policy.parameters() if p.shape == (2,)][-1]
        last[device] = 1.0
    return policy


def validation(problems=OTHERS, **changed):
    config = replace(CONFIG, keep=0.0, initial_placement="first", **changed)
    return Validation(problems, config, simulate_many, policy_that(0))


def test_ratios_by_hand():
    # From the slow device, best of one: the fast one, 20 ms. Its ops go to the fast one in turn:
    # 36, 26, 16, 20 ms. The chain takes 40 ms on either device, and longer on the way.
    assert validation().ratios(policy_that(0)) == pytest.approx((2.0, 1.0))
    assert validation().ratios(policy_that(1)) == pytest.approx((0.8, 1.0))
    assert validation().check(policy_that(1), 4).ratio == pytest.approx(0.8**0.5)


def test_memory_counts():
    """A device with half the memory: what is over the limit is paid for on both sides."""
    unequal = OTHERS[0]
    graph = replace(unequal.graph, param_bytes=np.full(4, 2**28))
    devices = [replace(device, memory_bytes=2**29) for device in unequal.cluster.devices]
    tight = PlacementProblem(graph, replace(unequal.cluster, devices=tuple(devices)), "none")
    # Half a GiB over the limit of the fast device alone, none of it with two ops on each.
    found = validation([tight], memory_penalty=0.1).ratios(policy_that(1))
    tensors = 10**6 / 2**30 * 0.1  # that come on top
    assert found[0] == pytest.approx(0.026 / (0.02 + 0.05), abs=4 * tensors / 0.07)


def test_the_first_of_the_best_is_kept():
    kept = validation()
    for updates, device in ((2, 0), (4, 1), (6, 0), (8, 1)):
        kept.check(policy_that(device), updates)
    assert kept.best.updates == 4
    assert kept.updates == 8
    assert [updates for updates, _ in kept.history] == [2, 4, 6, 8]
    assert kept.history[0][1] == kept.history[2][1] > kept.history[1][1] == kept.history[3][1]
    best, expected = kept.best_policy().state_dict(), policy_that(1).state_dict()
    assert all(torch.equal(best[name], expected[name]) for name in expected)


def test_what_is_kept_does_not_change_with_the_policy_in_training():
    kept, policy = validation(), policy_that(1)
    kept.check(policy, 2)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.fill_(7.0)
    best, expected = kept.best_policy().state_dict(), policy_that(1).state_dict()
    assert all(torch.equal(best[name], expected[name]) for name in expected)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing stopped."""
    directory = tmp_path_factory.mktemp("whole")
    train(PROBLEMS, CONFIG, directory, validation=OTHERS)
    return content(directory)


def test_validated_are_the_checkpoints_and_the_end(whole):
    card = whole["card"]
    history = card["validated"]["history"]
    assert [updates for updates, _ in history] == [2, 4, 6, 7]
    best = min(history, key=lambda entry: entry[1])
    assert [card["updates"], card["validated"]["ratio"]] == best
    rows = card["validated"]["problems"]
    assert [(row["graph"], row["cluster"]) for row in rows] == [
        ("unequal", "toy"),
        ("chain", "toy"),
    ]
    assert np.exp(np.mean(np.log([row["ratio"] for row in rows]))) == pytest.approx(best[1])
    assert [row["graph"] for row in whole["config"]["validation"]] == ["unequal", "chain"]


def test_the_training_is_the_same_as_without_validation(tmp_path, whole):
    train(PROBLEMS, CONFIG, tmp_path)
    bare = content(tmp_path)
    assert bare["metrics"] == whole["metrics"]
    state = dict(whole["state"])
    assert plain(state.pop("validation"))["updates"] == 7
    assert bare["state"] == state


def test_a_kill_between_any_two_writes(tmp_path, monkeypatch):
    config = replace(CONFIG, updates=2, checkpoint_every=1)
    train(PROBLEMS, config, tmp_path / "whole", validation=OTHERS)
    whole = content(tmp_path / "whole")

    def run(folder):
        train(PROBLEMS, config, folder, validation=OTHERS)

    kills = kills_survived(tmp_path, run, whole, monkeypatch)
    # config.json, and three files at each of two checkpoints and at the end
    assert kills == 1 + 3 * 3
