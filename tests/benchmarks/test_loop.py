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
    assert (
        page[2]
        == "| `one` | 7 | 61 s | 0.95 | 0.50 | 1.00 | 0.40 | 25.0% | 25.0% | 150.0% | 150.0% |"
    )
    assert page[-1] == "| mean |  |  |  |  |  |  | 25.0% | 25.0% | 150.0% | 150.0% |"


def test_the_fastest_is_judged_by_turns_that_did_not_choose_it():
    beside = [[20.0] * 4, [20.0] * 4]
    lucky = {"kept": [10.0, 10.0, 10.0, 10.0], "etf": [8.0, 12.0, 8.0, 12.0]}
    row = ROW | {"beside": beside, "samples": lucky}
    assert loop.regret(row, "kept") == 0
    # Even turns choose the second, which takes 12 in the odd ones; these choose what is kept.
    assert loop.judged_apart(row, "kept") == pytest.approx((10 / 12 - 1) / 2)
    assert loop.judged_apart(row, "etf") == pytest.approx((12 / 12 - 1 + 8 / 10 - 1) / 2)
