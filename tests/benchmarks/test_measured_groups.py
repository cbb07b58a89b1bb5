from benchmarks import measured_groups
from benchmarks.measuring import row_of


def test_the_table_by_hand():
    def ran(label, simulated, before, *now):
        more = {"simulated": simulated}
        rows = row_of(label, [0], "before"), row_of(label, [0], "now")
        runs = [{"samples": before}], [{"samples": samples} for samples in now]
        return [row | more | {"runs": each} for row, each in zip(rows, runs, strict=True)]

    rows = [
        *ran("all on 0", 4.0, [5.0], [4.0, 5.0]),
        *ran("groups `papers`", 2.0, [6.0], [3.0], [3.0]),
        *ran("groups `auto`", 1.0, [4.0], [2.0, 2.4], [2.5, 2.5]),
    ]
    before = (
        "5000 | 5000 to 5000 | 1.00",
        "6000 | 6000 to 6000 | 1.20",
        "4000 | 4000 to 4000 | 0.80",
    )
    now = "4500 | 4500 to 4500 | 1.00", "3000 | 3000 to 3000 | 0.67", "2450 | 2200 to 2500 | 0.54"
    simulated = [
        "| `net` | all on 0 | 4000 | 1.00 | ",
        "| `net` | groups `papers` | 2000 | 0.50 | ",
        "| `net` | groups `auto` | 1000 | 0.25 | ",
    ]
    lines = measured_groups.markdown({"net": {"rows": rows}}).splitlines()[2:]
    for line, *parts in zip(lines, simulated, before, now, strict=True):
        assert line == "{}{} | {} |".format(*parts)
    # What was not run by now has dashes.
    lines = measured_groups.markdown({"net": {"rows": rows[::2]}}).splitlines()[2:]
    assert lines[1] == f"{simulated[1]}{before[1]} | - | - | - |"
