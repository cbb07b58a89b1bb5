"""What goes together, and what does not."""

import pytest

from placeto import PlacetoError
from placeto.training.distributed import Scheme


def test_what_the_result_does_not_depend_on_is_not_in_a_runs_name():
    assert Scheme(1).document() == Scheme(8, address="auto").document() == {}
    assert Scheme(2, "asynchronous", 3).document() == {
        "scheme": {"mode": "asynchronous", "controllers": 3}
    }
    assert Scheme(evaluator="measure").document() == {"scheme": {"evaluator": "measure"}}
    measured = {"evaluator": "measure", "runs": 20}
    assert Scheme(evaluator="measure", runs=20).document() == {"scheme": measured}


def test_runs_go_with_measuring():
    with pytest.raises(PlacetoError, match="runs is 20, but evaluator is 'simulate'"):
        Scheme(runs=20)
    with pytest.raises(PlacetoError, match="runs is 3, expected a number from 4"):
        Scheme(evaluator="measure", runs=3)
