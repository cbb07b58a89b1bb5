from benchmarks.measured_training import page


def test_the_page_says_what_was_measured():
    found = {
        "runs": 7,
        "updates": [
            {"update": 1, "step_time": 0.2, "best_step_time": 0.15, "entropy": 0.5},
            {"update": 2, "step_time": 0.16, "best_step_time": 0.1, "entropy": 0.4},
        ],
        "confirmed": {"start": [0.2, 0.3, 0.1], "learned": [0.1, 0.11, 0.05], "fastest": [0.15]},
    }
    lines = page(found).splitlines()
    assert lines[0] == "Measured step times, ms, of 2 updates; 7 placements were run:"
    assert lines[4:6] == ["| 1 | 200 | 150 |", "| 2 | 160 | 100 |"]
    assert lines[-3:] == [
        "| start | 200 | 100 to 300 | 1.00 |",
        "| learned | 100 | 50 to 110 | 0.50 |",
        "| fastest | 150 | 150 to 150 | 0.75 |",
    ]
