"""The placer that trains an agent on the problem."""

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.envs import generator
from placeto.placers import Incumbent, placeto_2019
from placeto.placers.configs import PLACETO_2019


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24)


def test_improves_on_every_obvious_placement(nmt):
    placement = place(nmt, "placeto-2019", budget_seconds=4)
    obvious = [place(nmt, method).step_time for method in ("single", "expert", "etf")]
    assert placement.step_time < min(obvious)
    assert placement.feasible


@pytest.mark.parametrize("method", ["single", "expert", "etf"])
@pytest.mark.parametrize("toy", [generator.chain, generator.fork, generator.diamond])
def test_is_never_worse_than_what_it_starts_from(toy, method):
    # So short that nothing is learned.
    placement = place(toy(), "placeto-2019", budget_seconds=1e-9)
    assert placement.step_time <= place(toy(), method).step_time


@pytest.mark.parametrize("groups", [128, 500])
def test_the_budget_is_kept(groups):
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"), groups)
    placement = place(problem, "placeto-2019", budget_seconds=3)
    assert placement.wall_seconds < 3 + 2


def test_the_budget_ends_a_gradient_step_too(nmt, monkeypatch):
    # The budget is spent between the last placement of the episodes and the gradient.
    incumbent = Incumbent(nmt, budget_seconds=1e9)
    steps = []
    monkeypatch.setattr("torch.optim.Adam.step", lambda self: steps.append(1))
    monkeypatch.setattr(
        "placeto.training.trainer.returns_to_go",
        lambda rewards: setattr(incumbent, "budget_seconds", 0.0) or rewards,
    )
    placeto_2019.place_placeto_2019(incumbent, np.random.default_rng(0), PLACETO_2019.default)
    assert steps == []
