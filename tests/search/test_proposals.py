"""Which kinds of moves the search tries: by what paid."""

import numpy as np
import pytest

from placeto.search import moves
from tests.compiled import from_python

draw_kind = from_python(moves.draw_kind)


def test_kinds_that_paid_are_drawn_more_often():
    tried, gained = np.array([99.0, 99.0, 99.0]), np.array([29.99, 9.99, 50.0])
    rng = np.random.default_rng(0)
    drawn = np.bincount([draw_kind(tried[:2], gained[:2], 0.0, rng) for _ in range(4000)])
    assert drawn / 4000 == pytest.approx([0.75, 0.25], abs=0.03)
    drawn = np.bincount([draw_kind(tried, gained, 1.0, rng) for _ in range(4000)])
    assert drawn / 4000 == pytest.approx([1 / 3] * 3, abs=0.03)
    untried = np.zeros(2)
    drawn = np.bincount([draw_kind(untried, untried, 0.0, rng) for _ in range(4000)])
    assert drawn / 4000 == pytest.approx([0.5, 0.5], abs=0.03)
