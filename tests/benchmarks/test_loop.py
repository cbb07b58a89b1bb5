import pytest

from benchmarks import loop

# Both workers take 20 and 22 s, and in the second turn all is twice as slow.
ROW = {
    "runs": 7, "seconds": 61.2, "noise": 0.01, "stopped": "all runs were made",
    "beside": [[20.0, 40.0], [22.0, 44.0]],
    "samples": {"kept": [10.5, 21.0], "without runs": [21.0, 42.0], "etf": [8.4, 16.8]},
}  # fmt: skip


def test_regret_by_hand():
    assert loop.ratios(ROW) == pytest.approx({"kept": 0.5, "without runs": 1.0, "etf": 0.4})
    assert loop.better_single(ROW) == pytest.approx(20 / 21)
    assert loop.regret(ROW, "kept") == pytest.approx(0.25)
    assert loop.regret(ROW, "etf") == 0
    # A single device may be the fastest.
    alone = ROW | {"samples": {"kept": [21.0, 42.0], "without runs": [20.0, 40.0]}}
    assert loop.regret(alone, "kept") == pytest.approx(0.05)


def test_a_row_a_step_and_the_means():
    page = loop.markdown({"one": ROW, "two": ROW}).splitlines()
    assert page[2] == "| `one` | 7 | 61 s | 0.95 | 0.50 | 1.00 | 0.40 | 25.0% | 150.0% |"
    assert page[-1] == "| mean |  |  |  |  |  |  | 25.0% | 150.0% |"
