from benchmarks import win
from benchmarks.measuring import row_of


def ran(label: str, *rounds: list[float], **more: str) -> dict:
    return row_of(label, [0], **more) | {"runs": [{"samples": samples} for samples in rounds]}


def test_the_table_by_hand():
    rows = [
        ran("all on 0", [4.0, 5.0], [6.0, 4.0]),
        ran("expert", [3.0, 2.0], [2.0, 1.0]),
        row_of("all on 1", [1]) | {"reason": "worker 1 was killed"},
        ran("found", [1.0, 1.0], [1.5, 2.5], method="heft"),
    ]
    lines = win.markdown({"net": {"rows": rows}}).splitlines()[2:]
    assert lines == [
        "| `net` | all on 0 | 4500 | 4500 to 5000 | 2.25 |",
        "| `net` | expert | 2000 | 1500 to 2500 | 1.00 |",
        "| `net` | found (heft) | 1250 | 1000 to 2000 | 0.62 |",
    ]
