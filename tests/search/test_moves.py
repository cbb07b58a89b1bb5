"""Each kind of move changes what it says, and nothing that may not change."""

from itertools import pairwise

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.search import moves
from placeto.search.moves import Move, neighbourhood
from tests.builders import make_cluster, make_graph, make_problem
from tests.compiled import from_python
from tests.strategies import pinned

propose = from_python(moves.propose)

SEEDS = st.integers(0, 2**32 - 1)


def neighbours(problem, seed):
    """Each kind of move three times: (kind, a placement, its changed groups, what it became)."""
    space, rng = neighbourhood(problem), np.random.default_rng(seed)
    for kind in [*Move] * 3 if len(space.movable) else []:
        before = np.where(problem.allowed, rng.random(problem.allowed.shape), -1.0).argmax(axis=1)
        after = before.copy()
        propose(space, after, kind.value, rng)
        assert problem.allowed[np.arange(problem.num_groups), after].all()
        changed = np.flatnonzero(after != before)
        if len(changed):
            yield kind, before, changed, after
        else:  # one group always has another device
            assert kind not in (Move.SINGLE, Move.FOLLOW)


@given(pinned(), SEEDS)
def test_each_kind_changes_what_it_says(problem, seed):
    for kind, before, changed, after in neighbours(problem, seed):
        came_from, went_to = set(before[changed]), set(after[changed])
        if kind in (Move.SINGLE, Move.FOLLOW):
            assert len(changed) == 1
        elif kind == Move.SWAP:
            assert len(changed) == 2
        if kind in (Move.SWAP, Move.EXCHANGE):
            assert len(came_from | went_to) == 2
        else:
            assert len(went_to) == 1
        if kind == Move.SWAP:
            assert after[changed].tolist() == before[changed[::-1]].tolist()
        if kind in (Move.PART, Move.CLUSTER):
            assert len(came_from) == 1


@given(pinned(), SEEDS)
def test_a_follower_joins_an_adjacent_group_if_it_can(problem, seed):
    parent, child = problem.dag_edges
    for kind, before, changed, after in neighbours(problem, seed):
        if kind == Move.FOLLOW:
            [group] = changed
            adjacent = np.concatenate([parent[child == group], child[parent == group]])
            nearby = {d for d in before[adjacent] if problem.allowed[group, d]} - {before[group]}
            assert not nearby or after[group] in nearby


@given(pinned(), SEEDS)
def test_a_run_leaves_out_none_that_may_go(problem, seed):
    for kind, before, changed, after in neighbours(problem, seed):
        goes_to = dict(zip(before[changed], after[changed], strict=True))
        if kind == Move.EXCHANGE:
            goes_to |= {there: here for here, there in goes_to.items()}
        elif kind in (Move.RUN, Move.SHIFT):
            goes_to = dict.fromkeys(range(problem.num_devices), after[changed[0]])
        elif kind != Move.PART:
            continue
        positions = problem.group_position[changed]
        for group in problem.group_order[positions.min() : positions.max() + 1]:
            device = goes_to.get(before[group], before[group])
            assert after[group] == (device if problem.allowed[group, device] else before[group])


@given(pinned(), SEEDS)
def test_a_shift_takes_the_device_from_across_the_change(problem, seed):
    for kind, before, changed, after in neighbours(problem, seed):
        if kind == Move.SHIFT and problem.allowed.all():
            positions = problem.group_position[changed]
            ends = [positions.min() - 1, positions.max() + 1]
            across = [end for end in ends if 0 <= end < problem.num_groups]
            assert after[changed[0]] in before[problem.group_order[across]]


@given(pinned(), SEEDS)
def test_a_region_is_connected(problem, seed):
    edges = zip(*(ends.tolist() for ends in problem.dag_edges), strict=True)
    graph = nx.Graph(list(edges))
    graph.add_nodes_from(range(problem.num_groups))
    for kind, before, changed, after in neighbours(problem, seed):
        if kind not in (Move.REGION, Move.CLUSTER):
            continue
        target = after[changed[0]]
        inside = (before == target) | ~problem.allowed[:, target]  # maybe: they stay
        if kind == Move.CLUSTER:
            inside = before == before[changed[0]]
        inside[changed] = True
        part = graph.subgraph(np.flatnonzero(inside).tolist())
        assert set(changed.tolist()) <= nx.node_connected_component(part, int(changed[0]))


def test_what_the_kinds_make():
    # On two devices, kinds can be told apart by how many groups of three blocks change.
    names = [f"op{number}" for number in range(9)]
    edges = [(a, 1, [b]) for a, b in pairwise(names)]
    problem = make_problem(make_graph(dict.fromkeys(names, 1.0), edges), make_cluster(2))
    present = np.repeat([0, 1, 0], 3)
    space, rng = neighbourhood(problem), np.random.default_rng(0)
    seen = set()
    for kind in [*Move] * 450:
        devices = present.copy()
        propose(space, devices, kind.value, rng)
        seen.add(tuple(devices.tolist()))
    for expected in (
        (0, 0, 0, 1, 0, 1, 0, 0, 0),  # one group
        (0, 0, 1, 1, 0, 1, 0, 0, 0),  # two that change places
        (0, 0, 0, 0, 1, 1, 0, 0, 0),  # the change is shifted
        (0, 0, 0, 1, 1, 1, 1, 1, 0),  # a run goes to one device
        (0, 0, 1, 0, 0, 1, 0, 0, 0),  # two devices change places in a run
    ):
        assert expected in seen
