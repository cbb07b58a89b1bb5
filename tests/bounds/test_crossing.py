from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import load_cluster, load_instance
from placeto.bounds import lower_bound
from placeto.bounds.crossing import (
    Tensors,
    crossing_bound,
    heaviest_part,
    sides_of,
    tensors_between,
    widest_flow,
)
from tests.bounds.brute_force import Enumerated, enumerate_all, enumerated
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import clusters_of_links, examples, problems

ROUNDING = 1 + 1e-9


@examples(400)
@given(
    every=enumerated() | enumerated(made=clusters_of_links, ranked=True),
    known=st.sampled_from([0.05, 0.3, 0.7, 0.95]),
)
def test_no_placement_beats_what_crosses(every: Enumerated, known: float) -> None:
    # Known is less than the least of any problem, so that what crosses has to prove the rest.
    least = every.least_feasible
    if 0 < least < np.inf and (every.problem.alone == 1).all():
        assert crossing_bound(every.problem, known * least) <= least * ROUNDING


@examples(300)
@given(problem=problems(12), ends=st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_no_cut_is_narrower_than_what_flows_through_it(problem, ends) -> None:
    tensors = tensors_between(problem, 0.0)
    groups = problem.num_groups
    joined = heaviest_part(tensors, np.array(ends[:groups], dtype=float))
    if groups > 10 or np.count_nonzero(joined) < 2:
        return
    share = joined / joined.sum()
    width = widest_flow(tensors, share, lambda _: 1.0)
    assert width > 0
    for side in product([False, True], repeat=groups):
        cut = sum(
            size
            for number, size in enumerate(tensors.size)
            if len({side[end] for end in _ends(tensors, number)}) == 2
        )
        part = float(share[np.array(side)].sum())
        assert width * part * (1 - part) <= cut * ROUNDING + 1e-9 * width


def _ends(tensors: Tensors, number: int) -> list[int]:
    return tensors.ends[tensors.end_start[number] : tensors.end_start[number + 1]].tolist()


def test_who_shares_work_out_must_send():
    # Four groups of a quarter of the work each, and one tensor of 8 bytes that all of them make or
    # read. It carries K / 16 bytes for each of 6 pairs, so K is 64 / 3. Either device sends and
    # receives T bytes, together 2 T. One does T / 4 of the work, so the other has at least
    # x = 1 - T / 4 of it; and K x (1 - x) <= 2 T for 1 - x <= 1 where x <= 3 / 8: T >= 2.5.
    graph = make_graph(dict.fromkeys("abcd", 1.0), [("a", 8, ["b", "c", "d"])])
    problem = make_problem(graph, make_cluster(2))
    assert crossing_bound(problem, 2.0) == pytest.approx(2.5, rel=1e-6)
    # It is not below what is known, and proves nothing where channels are wide.
    assert crossing_bound(problem, 3.0) == 0.0
    assert crossing_bound(make_problem(graph, make_cluster(2, bandwidth=8.0)), 2.0) == 0.0
    assert enumerate_all(problem).least >= 2.5


def test_what_is_pruned_or_light_has_no_flow_and_counts_as_free():
    # e has as much work as each other op, and nothing joins it: a fifth of all may be anywhere.
    graph = make_graph(dict.fromkeys("abcde", 1.0), [("a", 8, ["b", "c", "d"])])
    problem = make_problem(graph, make_cluster(2))
    # Of the four, the device with most of them has T / 4, or all: as above, T >= 2.5 again.
    assert crossing_bound(problem, 2.4) == pytest.approx(2.5, rel=1e-6)


def test_a_side_is_a_host_or_what_a_fast_channel_joins():
    shares = np.full(8, 1 / 8), np.zeros(8)
    hosts, devices = sides_of(load_cluster("p3.8xlarge-2"), *shares)
    # By one way in and one way out of each host, 1.125 GB/s each.
    assert hosts.bandwidth.tolist() == [2.25e9, 2.25e9]
    assert hosts.speed.tolist() == [0.5, 0.5]
    assert devices.speed.tolist() == [1 / 8] * 8
    four = sides_of(load_cluster("n1-p100x2-4"), *shares)[0]
    assert four.speed.tolist() == [0.25] * 4


def test_the_network_between_two_hosts_is_too_narrow_for_a_pipeline():
    # Half of the work on each host takes 6 ms, which is all that devices alone would prove.
    instance = load_instance("cifar10_small_m8-p3.8xlarge-2")
    bound = lower_bound(instance.problem(order="critical-path"))
    assert 8.5e-3 < bound < instance.best.step_time
