"""The table of the study of ranks, by hand."""

from benchmarks import ranks


def test_ratios_are_to_the_same_seeds_search():
    # Ranks win a tenth and nothing, groups a half and a half: 0.95 and 0.5.
    row = {"instance": "one", "order": "gpipe", "auto": [1.0, 3.0], "ranks": [0.9, 3.0],
           "groups": [0.5, 1.5]}  # fmt: skip
    *_, first, mean = ranks.markdown([row]).splitlines()
    assert first == "| `one` | gpipe | 2000.00 ms | 0.950 | 0.500 |"
    assert mean == "| geometric mean |  |  | 0.950 | 0.500 |"
    *_, mean = ranks.markdown([row, row | {"ranks": [1.0, 3.0]}]).splitlines()
    assert mean.split(" | ")[3] == "0.975"  # of 0.95 and 1
