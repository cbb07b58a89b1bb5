"""What is pooled over the groups on each device: by a plain reading of the formula, and by hand."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from placeto import simulate
from placeto.envs.features.groups import group_graph
from placeto.envs.features.pairs import PAIR_FEATURES, TINY
from placeto.models.placeto.network import KinTensors, PlacetoPolicy
from placeto.models.placeto.play import play
from placeto.models.placeto.pools import ANCESTOR, DESCENDANT, PARALLEL, SUMS, kin_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.models.placeto.pairs import SHAPE, drawn_policy, guide_of, gumbel
from tests.models.placeto.test_play import episodes, visited_placements
from tests.strategies import examples, problems

LATE = 2.0  # of a start, over what the step takes


def plainly(problem, policy, devices, visited, group):
    """(num_devices, SUMS * heads) of one group, from the formula of `PlacetoPolicy.pooled`."""
    outcomes = simulate_many(problem, devices[None])
    start = outcomes.group_start[0] / max(outcomes.step_time[0], TINY)
    graph, dag = group_graph(problem), nx.DiGraph(zip(*problem.dag_edges, strict=True))
    dag.add_nodes_from(range(problem.num_groups))
    with torch.inference_mode():
        _, queries, keys = (values.numpy() for values in policy.embed(graph))
        by_relation, apart = policy.by_relation.numpy(), policy.apart.numpy()
    above, below = nx.ancestors(dag, group), nx.descendants(dag, group)
    work = problem.group_seconds.min(axis=1)
    moved = np.zeros(problem.num_groups)  # bytes between the two, either way
    for source, target, size in zip(*problem.group_edges, strict=True):
        if group in (source, target):
            moved[source + target - group] += size
    heads = policy.config.heads
    sums = np.zeros((problem.num_devices, SUMS * heads))
    for other in set(range(problem.num_groups)) - {group}:
        relation = ANCESTOR if other in above else DESCENDANT if other in below else PARALLEL
        value = (queries[group] * keys[other]).sum(axis=1)
        value += by_relation[int(visited[other]), relation]
        value += apart[0] * abs(graph.attributes[group, 1] - graph.attributes[other, 1])
        value += apart[1] * abs(start[group] - start[other])
        affinity = value / (1 + abs(value))
        sums[devices[other], :heads] += work[other] / max(work.sum(), 1e-300) * affinity
        sums[devices[other], heads:] += moved[other] / max(moved.sum(), 1) * affinity
    return sums


@examples(25)
@given(episodes(), st.booleans(), st.integers(0, 99))
def test_pools_are_what_the_formula_says(example, decided, seed):
    problem, start, noise = example
    policy, groups = drawn_policy(seed), problem.num_groups
    played = play(
        problem, guide_of(problem, policy), start, noise, memory_penalty=0, decided=decided
    )
    placements = visited_placements(played, start)
    if not np.isfinite(simulate_many(problem, placements[:, 1]).step_time).all():
        return
    kin = KinTensors.of(kin_of(problem, group_graph(problem)))
    for step, group in enumerate(played.current.tolist()):
        visited = np.full(groups, decided or step >= groups)
        visited[played.current[:step]] = True
        found = played.pairs[step, 1, :, PAIR_FEATURES:]
        expected = plainly(problem, policy, placements[step, 1], visited, group)
        expected[~problem.allowed[group]] = found[~problem.allowed[group]]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
        with torch.inference_mode():
            pooled = policy.pooled(
                policy.embed(group_graph(problem)),
                kin,
                torch.full((3,), group),
                *(
                    torch.from_numpy(values[step])
                    for values in (played.placed, played.visited, played.starts)
                ),
                problem.num_devices,
            )
        np.testing.assert_allclose(
            played.pairs[step, :, :, PAIR_FEATURES:], pooled, rtol=1e-4, atol=1e-5
        )


def by_torch(policy, problem, current, devices, visited, starts):
    """What `PlacetoPolicy.pooled` gives, from operations that torch knows the gradients of."""
    kin = kin_of(problem, group_graph(problem))
    _, queries, keys = policy.embed(group_graph(problem))
    position = torch.from_numpy(kin.position)
    relation = torch.from_numpy(kin.relation).long()[current]
    value = torch.einsum("bhr,uhr->buh", queries[current], keys)
    value = value + policy.by_relation[visited.long(), relation]
    value = value + (position[current, None] - position).abs()[:, :, None] * policy.apart[0]
    late = (starts.gather(1, current[:, None]) - starts).abs()
    value = value + late[:, :, None] * policy.apart[1]
    affinity = value / (1 + value.abs())
    there = torch.nn.functional.one_hot(devices.long(), problem.num_devices).float()
    there[torch.arange(len(current)), current] = 0
    share = torch.zeros(kin.relation.shape)
    for group in range(problem.num_groups):
        for index in range(kin.start[group], kin.start[group + 1]):
            share[group, kin.neighbour[index]] += kin.share[index]
    weights = torch.from_numpy(kin.work).expand(len(current), -1), share[current]
    return torch.cat(
        [torch.einsum("bu,bud,buh->bdh", weight, there, affinity) for weight in weights], dim=2
    )


@examples(15)
@given(problems(max_ops=12), st.integers(0, 99))
def test_gradients_are_those_that_torch_finds(problem, seed):
    policy, rng = drawn_policy(seed), np.random.default_rng(seed)
    batch, groups = 5, problem.num_groups
    case = (
        torch.from_numpy(rng.integers(groups, size=batch)),
        torch.from_numpy(rng.integers(problem.num_devices, size=(batch, groups)).astype(np.int16)),
        torch.from_numpy(rng.random((batch, groups)) < 0.5),
        torch.from_numpy(rng.random((batch, groups)).astype(np.float32)),
    )
    graph = group_graph(problem)
    kin, parameters = KinTensors.of(kin_of(problem, graph)), list(policy.parameters())
    ours = policy.pooled(policy.embed(graph), kin, *case, problem.num_devices)
    torchs = by_torch(policy, problem, *case)
    torch.testing.assert_close(ours, torchs, rtol=1e-4, atol=1e-5)
    weight = torch.from_numpy(rng.normal(size=ours.shape).astype(np.float32))
    found, expected = (
        torch.autograd.grad((pooled * weight).sum(), parameters, allow_unused=True)
        for pooled in (ours, torchs)
    )
    assert sum(gradient is not None for gradient in found) >= 6
    for gradient, other in zip(found, expected, strict=True):
        assert (gradient is None) == (other is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, other, rtol=1e-3, atol=1e-4)


def test_by_hand():
    # A source of 1 s that two ops of 2 and 5 s read; the first of them also reads 3 of 4 bytes.
    graph = make_graph(
        {"source": 1.0, "left": 2.0, "right": 5.0},
        [("source", 3, ["left"]), ("source", 1, ["right"])],
    )
    problem = make_problem(graph, make_cluster(2))
    policy = PlacetoPolicy(PlacetoNetworkConfig(heads=1, rank=1))
    with torch.no_grad():
        for layer in (policy.query, policy.key):
            layer.weight.zero_()
            layer.bias.zero_()
        policy.by_relation.copy_(torch.tensor([[1.0, 3.0, 0.0], [-1.0, -3.0, 0.0]])[:, :, None])
        policy.apart.zero_()
    start = np.zeros((1, 3), dtype=int)
    played = play(problem, guide_of(problem, policy), start, np.zeros((3, 1, 2)), memory_penalty=0)
    assert played.current.tolist() == [0, 1, 2]
    of_left = played.pairs[1, 0, :, PAIR_FEATURES:]
    # The source is its ancestor, visited: -3 / 4; the other is parallel, and not: 1 / 2.
    where = played.placed[1, 0]
    expected = np.zeros((2, 2))
    expected[where[0]] += [1 / 8 * -3 / 4, -3 / 4]
    expected[where[2], 0] += 5 / 8 / 2
    np.testing.assert_allclose(of_left, expected, rtol=1e-6)
    # What was not placed is a descendant, whose affinity is 0.
    np.testing.assert_array_equal(played.pairs[0, 0, :, PAIR_FEATURES:], 0)


def test_bytes_and_starts_count():
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0}, [("a", 1, ["c"]), ("b", 3, ["c"])])
    problem = make_problem(graph, make_cluster(3))
    policy = PlacetoPolicy(PlacetoNetworkConfig(heads=1, rank=1))
    with torch.no_grad():
        for layer in (policy.query, policy.key):
            layer.weight.zero_()
            layer.bias.zero_()
        policy.by_relation.zero_()
        policy.apart.copy_(torch.tensor([[0.0], [-LATE]]))
    devices = np.array([[0, 1, 2]])
    played = play(
        problem, guide_of(problem, policy), devices, np.zeros((3, 1, 3)), memory_penalty=0,
        decided=True, forced=devices,
    )  # fmt: skip
    schedule = simulate(problem, devices[0])
    apart = LATE * (schedule.start[2] - schedule.start[0]) / schedule.step_time
    pools = played.pairs[2, 0, :, PAIR_FEATURES:]
    affinity = -apart / (1 + apart)
    assert pools[0] == pytest.approx([affinity / 3, affinity / 4], rel=1e-5)
    assert pools[1] == pytest.approx([affinity / 3, affinity * 3 / 4], rel=1e-5)
    assert pools[2].tolist() == [0, 0]


def test_without_pools_there_is_nothing_but_what_is_seen():
    problem = make_problem(make_graph({"a": 1.0, "b": 1.0}, [("a", 1, ["b"])]), make_cluster(2))
    policy = PlacetoPolicy(replace(SHAPE, pooling="none"))
    start = np.zeros((4, 2), dtype=int)
    played = play(problem, guide_of(problem, policy), start, gumbel(0, 2, 4, 2), memory_penalty=0)
    assert played.pairs.shape == (2, 4, 2, PAIR_FEATURES)
    assert played.placed.shape == played.visited.shape == played.starts.shape == (2, 4, 0)
