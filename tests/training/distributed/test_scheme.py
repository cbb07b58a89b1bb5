"""What goes together, and what does not."""

from placeto.training.distributed import Scheme


def test_what_the_result_does_not_depend_on_is_not_in_a_runs_name():
    assert Scheme(1).document() == Scheme(8, address="auto").document() == {}
    assert Scheme(2, "asynchronous", 3).document() == {
        "scheme": {"mode": "asynchronous", "controllers": 3}
    }
    assert Scheme(evaluator="measure").document() == {"scheme": {"evaluator": "measure"}}
