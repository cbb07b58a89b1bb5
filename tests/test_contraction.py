"""Contraction against a plain one that looks at all pairs every time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.grouping.contraction import Groups, contract
from placeto.grouping.disjoint_sets import numbered, roots
from tests.reference_grouping import contracted


def merged(sizes: dict[tuple[int, int], int], shares: list[float], surplus: int, limit: float):
    groups = Groups(np.arange(len(shares)), np.array(shares), 0.05)
    low, high = np.array(list(sizes), dtype=np.int64).reshape(-1, 2).T.copy()
    contract(groups, low, high, np.array(list(sizes.values()), dtype=float), surplus, limit)
    return roots(groups.parent)


@given(st.integers(0, 10**9))
def test_against_the_plain_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 15))
    # Shares that tie, that vanish, and that hardly ever meet; sizes that tie, or do not.
    some = [rng.choice([0, 0, 0.1, 0.2], count), rng.integers(0, 4, count) * 0.1, rng.random(count)]
    shares = [*some, np.zeros(count)][rng.integers(4)].tolist()
    most = [2, 10**9][rng.integers(2)]
    pairs = np.unique(np.sort(rng.integers(0, count, (rng.integers(40), 2))), axis=0).tolist()
    sizes = {
        (a, b): int(rng.integers(most + 1)) for a, b in rng.permutation(pairs).tolist() if a < b
    }
    surplus, limit = int(rng.integers(count + 1)), 3 * rng.random()
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
