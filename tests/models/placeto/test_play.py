"""Episodes of the policy against placements that are simulated one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_cluster, load_graph, simulate
from placeto.envs import generator
from placeto.envs.features.pairs import PAIR_FEATURES, TINY, Group
from placeto.heuristics.initial import all_on
from placeto.models.placeto.play import play
from placeto.objective import GIB, penalised_time
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.envs.features.observing import observed
from tests.models.placeto.pairs import drawn_policy, guide_of, gumbel
from tests.strategies import allowed_placements, examples, pinned

PENALTY = 0.5 * GIB  # half a second a byte
SEEN = "pairs", "groups", "open", "placed", "visited", "starts"
REST = ("current", "actions", "rewards", "devices", "step_time", "best", "best_cost", "simulated")
COLUMNS = SEEN + REST


def visited_placements(played, start):
    """(steps + 1, episodes, num_groups) where the groups were before each step, and at the end."""
    placements = [np.array(start)]
    for group, devices in zip(played.current.tolist(), played.actions, strict=True):
        placements.append(placements[-1].copy())
        placements[-1][:, group] = devices
    return np.array(placements)


def costs_of(problem, placements, penalty):
    """(steps + 1, episodes) penalised step times; no step takes less than `TINY`."""
    flat = placements.reshape(-1, problem.num_groups)
    outcomes = simulate_many(problem, flat)
    costs = penalised_time(problem, outcomes, penalty) - outcomes.step_time
    return (costs + np.maximum(outcomes.step_time, TINY)).reshape(placements.shape[:2])


@st.composite
def episodes(draw):
    """A problem, three placements to start from, and noise of one sweep or two."""
    problem = draw(pinned(max_ops=14))
    start = np.array([draw(allowed_placements(problem)) for _ in range(3)])
    steps = draw(st.integers(1, 2)) * problem.num_groups
    noise = draw(st.sampled_from([0.0, 1.0])) * gumbel(
        draw(st.integers(0, 99)), steps, 3, problem.num_devices
    )
    return problem, start, noise


@examples(30)
@given(episodes(), st.sampled_from([0.0, PENALTY]), st.integers(0, 99), st.integers(0, 13))
def test_costs_and_rewards_are_those_of_the_placements_one_by_one(example, penalty, seed, begin):
    problem, start, noise = example
    sweeps = len(noise) // problem.num_groups
    part = problem.group_order[begin % problem.num_groups :]
    noise = noise[: sweeps * len(part)]
    guide, before = guide_of(problem, drawn_policy(seed)), start.copy()
    played = play(problem, guide, start, noise, memory_penalty=penalty, part=part)
    assert (start == before).all()
    assert played.current.tolist() == part.tolist() * sweeps
    assert problem.allowed[played.current[:, None], played.actions].all()

    placements = visited_placements(played, start)
    costs = costs_of(problem, placements, penalty)
    assert np.isfinite(costs).all()
    assert (played.devices == placements[-1]).all()
    end = simulate_many(problem, played.devices)
    assert played.step_time.tolist() == np.maximum(end.step_time, TINY).tolist()
    np.testing.assert_allclose(played.rewards * costs[0], costs[:-1] - costs[1:], atol=1e-9)
    np.testing.assert_allclose(
        played.rewards.sum(axis=0) * costs[0], costs[0] - costs[-1], atol=1e-8
    )
    np.testing.assert_allclose(played.best_cost, costs.min(axis=0), rtol=1e-9)
    np.testing.assert_allclose(
        costs_of(problem, played.best[None], penalty)[0], played.best_cost, rtol=1e-9
    )
    moves = (placements[1:] != placements[:-1]).any(axis=2).sum(axis=0)
    assert played.simulated.tolist() == (1 + moves).tolist()


def choices(allowed, rows):
    """Of devices that look alike, the first that is allowed."""
    seen = []
    for may, row in zip(allowed.tolist(), rows.tolist(), strict=True):
        seen.append(row if may and row not in seen else None)
    return [row is not None for row in seen]


@examples(20)
@given(episodes(), st.booleans(), st.integers(0, 99))
def test_what_is_seen_and_what_is_chosen(example, decided, seed):
    problem, start, noise = example
    policy, groups = drawn_policy(seed), problem.num_groups
    guide = guide_of(problem, policy)
    played = play(problem, guide, start, noise, memory_penalty=0, decided=decided)
    placements, current = visited_placements(played, start), played.current.tolist()
    for step, group in enumerate(current):
        later = decided or step >= groups
        visited = range(groups) if later else current[:step]
        pairs, rows = observed(problem, placements[step, 1], visited, later, only=[group])
        np.testing.assert_array_equal(played.pairs[step, 1, :, :PAIR_FEATURES], pairs[group])
        np.testing.assert_array_equal(played.groups[step, 1], rows[group])
        seen = played.pairs[step, 1]
        assert played.open[step, 1].tolist() == choices(problem.allowed[group], seen)
    for step, group in enumerate(current):
        with torch.inference_mode():
            logits = policy(
                torch.from_numpy(played.pairs[step]),
                torch.from_numpy(played.groups[step]),
                torch.from_numpy(guide.table[[group] * 3]),
                torch.from_numpy(played.open[step]),
            ).numpy()
        raised = logits + noise[step]
        chosen = np.take_along_axis(raised, played.actions[step][:, None], axis=1)[:, 0]
        size = 1 + np.abs(logits[np.isfinite(logits)]).max()
        assert (chosen >= raised.max(axis=1) - 1e-4 * size).all()


@examples(25)
@given(episodes(), st.data())
def test_forced_devices_are_taken_whatever_the_scores(example, data):
    problem, start, noise = example
    forced = np.array([data.draw(allowed_placements(problem)) for _ in range(3)])
    guide = guide_of(problem, drawn_policy())
    played = play(problem, guide, start, noise, memory_penalty=PENALTY, forced=forced)
    assert (played.actions == forced[:, played.current].T).all()
    assert (played.devices == forced).all()
    assert np.take_along_axis(played.open, played.actions[:, :, None], axis=2).all()
    for step, group in enumerate(played.current.tolist()):
        for episode in range(3):
            assert_one_of_each_kind(
                problem.allowed[group], played.pairs[step, episode], played.open[step, episode]
            )
    costs = costs_of(problem, visited_placements(played, start), PENALTY)
    np.testing.assert_allclose(played.best_cost, costs.min(axis=0), rtol=1e-9)


def assert_one_of_each_kind(allowed, rows, chosen):
    """Of devices that look alike exactly one is a choice, if one is allowed."""
    assert not chosen[~allowed].any()
    kinds = {tuple(row) for row in rows[allowed].tolist()}
    assert sorted(kinds) == sorted(map(tuple, rows[chosen].tolist()))


def test_draws_are_as_frequent_as_the_softmax_says():
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0}, [("a", 1, ["c"]), ("b", 1, ["c"])])
    problem = make_problem(graph, make_cluster(3))
    policy, count = drawn_policy(seed=1), 20_000
    guide = guide_of(problem, policy)
    start = np.tile([0, 1, 2], (count, 1))
    played = play(problem, guide, start, gumbel(0, 3, count, 3), memory_penalty=0)
    first = played.current[0]
    assert played.open[0].all()
    with torch.inference_mode():
        logits = policy(
            torch.from_numpy(played.pairs[0, :1]),
            torch.from_numpy(played.groups[0, :1]),
            torch.from_numpy(guide.table[[first]]),
            torch.from_numpy(played.open[0, :1]),
        )
    chances = logits.softmax(dim=1)[0].numpy()
    assert chances.max() - chances.min() > 0.02  # or the draws could be of anything
    found = np.bincount(played.actions[0], minlength=3) / count
    deviation = np.sqrt(chances * (1 - chances) / count)
    assert (np.abs(found - chances) < 4 * deviation).all()


def test_visits_are_counted_over_two_sweeps():
    problem = generator.diamond()
    guide = guide_of(problem, drawn_policy())
    noise = np.zeros((12, 1, 2))
    played = play(problem, guide, all_on(problem, 0)[None], noise, memory_penalty=0)
    shares = [*(step / 6 for step in range(6)), *[1.0] * 6]
    assert played.groups[:, 0, Group.VISITED] == pytest.approx(shares)
    assert played.groups[:, 0, Group.LATER].tolist() == [0] * 6 + [1] * 6
    again = play(problem, guide, played.devices, noise[:6], memory_penalty=0, decided=True)
    assert again.groups[:, 0, Group.VISITED].tolist() == [1] * 6
    assert again.groups[:, 0, Group.LATER].tolist() == [1] * 6


def test_two_sweeps_are_one_after_the_other():
    problem = generator.diamond()
    guide = guide_of(problem, drawn_policy(seed=3))
    noise, start = gumbel(4, 12, 5, 2), np.tile(all_on(problem, 0), (5, 1))
    both = play(problem, guide, start, noise, memory_penalty=0)
    first = play(problem, guide, start, noise[:6], memory_penalty=0)
    second = play(problem, guide, first.devices, noise[6:], memory_penalty=0, decided=True)
    np.testing.assert_array_equal(both.actions, np.concatenate([first.actions, second.actions]))
    np.testing.assert_array_equal(both.pairs, np.concatenate([first.pairs, second.pairs]))
    np.testing.assert_array_equal(both.groups, np.concatenate([first.groups, second.groups]))
    np.testing.assert_array_equal(both.devices, second.devices)


def test_without_memory_of_what_was_seen_all_else_is_the_same():
    problem = generator.diamond()
    guide, noise = guide_of(problem, drawn_policy()), gumbel(0, 6, 4, 2)
    start = np.tile(all_on(problem, 0), (4, 1))
    whole = play(problem, guide, start, noise, memory_penalty=0)
    bare = play(problem, guide, start, noise, memory_penalty=0, remember=False)
    assert not any(len(getattr(bare, name)) for name in SEEN)
    for name in REST:
        np.testing.assert_array_equal(getattr(bare, name), getattr(whole, name))


@pytest.mark.parametrize("threads", [2, 5, 40])
def test_the_number_of_threads_changes_no_bit(threads, monkeypatch):
    found = []
    for count in (1, threads):
        # Anew: a problem keeps the states that were made for it.
        problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24)
        monkeypatch.setattr(
            "placeto.models.placeto.play.get_num_threads", lambda count=count: count
        )
        start = np.tile(all_on(problem, 1), (7, 1))
        guide = guide_of(problem, drawn_policy())
        found.append(play(problem, guide, start, gumbel(0, 24, 7, 4), memory_penalty=2.0))
    for name in COLUMNS:
        one, many = (getattr(played, name) for played in found)
        assert one.tobytes() == many.tobytes(), name


def test_steps_that_take_no_time():
    graph = make_graph({"a": 0.0, "b": 0.0}, [("a", 0, ["b"])], param_bytes={"a": 6})
    problem = make_problem(graph, make_cluster(2, memory=4))
    assert simulate(problem, [0, 1]).step_time == 0
    played = play(
        problem,
        guide_of(problem, drawn_policy()),
        np.array([[0, 0], [0, 1]]),
        np.zeros((2, 2, 2)),
        memory_penalty=0,
        forced=np.array([[0, 1], [1, 0]]),
    )
    assert np.isfinite(played.pairs).all()
    assert np.isfinite(played.groups).all()
    assert (played.rewards == 0).all()
    assert played.best_cost == pytest.approx([0, 0], abs=TINY)


def test_scores_that_are_no_numbers_leave_a_group_where_it_is():
    # Finite weights, as files may hold, whose sums are not.
    problem = generator.diamond()
    policy = drawn_policy()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(parameter.sign() * 3e38)
    start = np.array([[0, 1, 0, 1, 1, 0]])
    played = play(problem, guide_of(problem, policy), start, np.zeros((6, 1, 2)), memory_penalty=0)
    assert np.isin(played.actions, [0, 1]).all()
