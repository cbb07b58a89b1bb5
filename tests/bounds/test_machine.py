import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto.bounds.heads import one_machine

NUMBERS = st.integers(0, 9).map(float)


@given(ops=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=7))
def test_the_length_is_that_of_the_worst_set_of_ops(ops):
    sets = itertools.chain.from_iterable(
        itertools.combinations(ops, size) for size in range(1, len(ops) + 1)
    )
    worst = max(
        min(op[0] for op in chosen) + sum(op[1] for op in chosen) + min(op[2] for op in chosen)
        for chosen in sets
    )
    release, held, delivery = np.array(ops).T.copy()
    assert one_machine(release, held, delivery) == pytest.approx(worst)


def test_no_ops_take_no_time():
    assert one_machine(np.zeros(0), np.zeros(0), np.zeros(0)) == -np.inf
