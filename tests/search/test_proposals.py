"""What the search tries: by what paid, and by what the policy says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto.envs.features.pairs import PAIR_FEATURES
from placeto.models.placeto import scoring
from placeto.models.placeto.play import play
from placeto.search import moves
from placeto.search.chains import unguided
from placeto.search.moves import GUIDED, Move, neighbourhood
from placeto.simulation.reduction import compiled
from placeto.simulation.state import OPS, buffers, state_in
from tests.builders import make_cluster, make_graph, make_problem
from tests.compiled import advance, begin, from_python, read
from tests.models.placeto.pairs import drawn_policy, guide_of
from tests.strategies import allowed_placements, examples, pinned

draw_kind = from_python(moves.draw_kind)
no_opinion = from_python(moves.no_opinion)
propose_guided = from_python(moves.propose_guided)
score = from_python(scoring.score)


@pytest.fixture(scope="module")
def policy():
    return drawn_policy()


def simulated(problem, devices):
    c = compiled(problem).compiled
    s = state_in(c, buffers(c, 1)[0])
    begin(c, devices, s)
    advance(c, s, 0, OPS)
    peak = np.empty(problem.num_devices, dtype=np.int64)
    return c, s, read(s, peak, np.empty(0)), peak


def proposals(problem, ready, devices, opinion, kind, count, seed=0):
    """(count, num_groups) what is proposed again and again from a placement."""
    devices = np.asarray(devices)
    c, s, step_time, peak = simulated(problem, devices)
    rng, space = np.random.default_rng(seed), neighbourhood(problem)
    many = np.tile(devices, (count, 1))
    for candidate in many:
        propose_guided(c, ready, space, s, step_time, peak, opinion, kind, candidate, rng)
    return many


def known(problem):
    """An opinion that was asked of every group and is indifferent."""
    opinion = no_opinion(problem.num_groups, problem.num_devices, PAIR_FEATURES)
    opinion.logits[:] = 0.0
    opinion.known[:] = opinion.surveyed[:] = True
    return opinion


def test_kinds_that_paid_are_drawn_more_often():
    tried, gained = np.array([99.0, 99.0, 99.0]), np.array([29.99, 9.99, 50.0])
    rng = np.random.default_rng(0)
    drawn = np.bincount([draw_kind(tried, gained, 2, 0.0, rng) for _ in range(4000)])
    assert drawn / 4000 == pytest.approx([0.75, 0.25], abs=0.03)
    drawn = np.bincount([draw_kind(tried, gained, 3, 1.0, rng) for _ in range(4000)])
    assert drawn / 4000 == pytest.approx([1 / 3] * 3, abs=0.03)
    untried = np.zeros(2)
    drawn = np.bincount([draw_kind(untried, untried, 2, 0.0, rng) for _ in range(4000)])
    assert drawn / 4000 == pytest.approx([0.5, 0.5], abs=0.03)


def test_moves_the_group_that_the_policy_would_move_where_it_would():
    problem = make_problem(make_graph(dict.fromkeys("abc", 1.0)), make_cluster(3))
    opinion = known(problem)
    opinion.logits[1, 2] = 50.0
    opinion.logits[:, 1] = -np.inf  # not even by chance
    many = proposals(problem, unguided(problem), [0, 0, 0], opinion, int(Move.SINGLE), 400)
    assert (many != 1).all()
    assert ((many != 0).sum(axis=1) == 1).all()
    # One of three is not among four asked in 20% of cases.
    assert (many[:, 1] == 2).mean() == pytest.approx(1 - (2 / 3) ** 4, abs=0.06)


def test_changes_nothing_where_the_policy_sees_no_other_device():
    problem = make_problem(make_graph(dict.fromkeys("abc", 1.0)), make_cluster(2))
    opinion = known(problem)
    opinion.logits[:, 1] = -np.inf
    for kind in GUIDED:
        many = proposals(problem, unguided(problem), [0, 0, 0], opinion, kind, 20)
        assert (many == 0).all()


@examples(15)
@given(data=st.data())
def test_the_policy_is_asked_what_it_is_asked_in_a_sweep(policy, data):
    problem = data.draw(pinned())
    space = neighbourhood(problem)
    if len(space.movable) == 0:
        return
    devices = np.array(data.draw(allowed_placements(problem)))
    ready = guide_of(problem, policy)
    columns = policy.config.pair_columns
    opinion = no_opinion(problem.num_groups, problem.num_devices, columns)
    many = proposals(problem, ready, devices, opinion, int(Move.SINGLE), 30)
    groups = np.arange(problem.num_groups)
    assert problem.allowed[groups[None], many].all()
    # A sweep in which every group stays sees the same schedule at each step.
    stay = np.zeros((problem.num_groups, 1, problem.num_devices))
    swept = play(
        problem, ready, devices[None], stay, memory_penalty=0.0, decided=True, forced=devices[None]
    )
    for step, group in enumerate(swept.current):
        if opinion.known[group]:
            seen, choices = swept.pairs[step, 0], swept.open[step, 0]
            logits = np.full(problem.num_devices, -np.inf)
            score(ready.weights, seen, swept.groups[step, 0], ready.table[group], choices, logits)
            both = np.isfinite(logits) & np.isfinite(opinion.logits[group])
            assert opinion.logits[group][both] == pytest.approx(logits[both], rel=1e-5, abs=1e-6)
            assert both[devices[group]]
