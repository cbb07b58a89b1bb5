"""The table of the study of ranks, by hand."""

from benchmarks import ranks


def test_ratios_are_to_the_same_seeds_search():
    # Ranks win a tenth and nothing, groups a half and a half: 0.95 and 0.5.
    row = {"step": "one", "devices": 2, "order": "gpipe", "auto": [1.0, 3.0], "ranks": [0.9, 3.0],
           "groups": [0.5, 1.5]}  # fmt: skip
    *_, first, mean = ranks.markdown([row]).splitlines()
    assert first == "| `one` | 2 | gpipe | 2000.00 ms | 0.950 | 0.500 |"
    assert mean == "| geometric mean, two devices |  |  |  | 0.950 | 0.500 |"
    *_, two, more = ranks.markdown(
        [row, row | {"ranks": [1.0, 3.0]}, row | {"devices": 4}]
    ).splitlines()
    assert two.split(" | ")[4] == "0.975"  # of 0.95 and 1
    assert more.split(" | ")[4] == "0.950"
