"""Contraction against a plain one that looks at all pairs every time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.grouping.contraction import Groups, contract
from placeto.grouping.disjoint_sets import numbered, roots
from tests.reference_grouping import contracted

# Shares that tie, that vanish, and that hardly ever meet.
SHARES = [st.sampled_from([0.0, 0.0, 0.1, 0.2]), st.integers(0, 3).map(lambda n: n * 0.1),
          st.floats(0, 1), st.just(0.0)]  # fmt: skip


def merged(sizes: dict[tuple[int, int], int], shares: list[float], surplus: int, limit: float):
    groups = Groups(np.arange(len(shares)), np.array(shares), 0.05)
    low, high = np.array(list(sizes), dtype=np.int64).reshape(-1, 2).T.copy()
    contract(groups, low, high, np.array(list(sizes.values()), dtype=float), surplus, limit)
    return roots(groups.parent)


@given(st.data())
def test_against_the_plain_one(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14))
    share = data.draw(st.sampled_from(SHARES))
    shares = data.draw(st.lists(share, min_size=count, max_size=count))
    group = st.integers(0, count - 1)
    pair = st.tuples(group, group).filter(lambda p: p[0] < p[1])
    size = data.draw(st.sampled_from([st.integers(0, 2), st.integers(0, 10**9)]))
    sizes = data.draw(st.dictionaries(pair, size, max_size=40)) if count > 1 else {}
    surplus, limit = data.draw(st.integers(0, count)), data.draw(st.floats(0, 3))
    found = merged(sizes, shares, surplus, limit)
    assert found.tolist() == contracted(sizes, shares, surplus, limit, 0.05)


@given(st.integers(2, 60), st.integers(0, 60))
def test_a_hub_whose_number_falls_with_every_merge(count: int, surplus: int) -> None:
    # The higher a leaf, the more bytes it shares with the last group: each merge takes the highest
    # leaf that is left, and renumbers all pairs of the hub at no change of weight.
    sizes = {(leaf, count - 1): leaf for leaf in range(count - 1)}
    left = max(count - 1 - surplus, 0)
    expected = np.minimum(np.arange(count), left)
    assert merged(sizes, [0.0] * count, surplus, 1.0).tolist() == expected.tolist()


def test_numbered_by_hand() -> None:
    assert numbered(np.array([5, 2, 5, 0, 2])).tolist() == [0, 1, 0, 2, 1]
    assert numbered(np.array([], dtype=np.int64)).tolist() == []
