"""The benchmark of many processes, in its quick form."""

import pytest

from benchmarks import ray_scaling
from placeto.distributed import ray_session


def test_the_quick_form_measures_everything_and_writes_nothing(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(ray_scaling, "RESULTS", tmp_path)
    with ray_session(None, 2):
        ray_scaling.main(["--quick"])
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[4:]]
    assert [row[:3] for row in rows] == [
        ["synchronous", "1", "no Ray"],
        ["synchronous", "1", "1"],
        ["asynchronous", "1", "no Ray"],
        ["asynchronous", "1", "1"],
        ["search", "1", "1"],
    ]
    rates = [float(row[3].replace(",", "")) for row in rows]
    ratios = [float(row[4]) for row in rows]
    assert ratios[0] == ratios[2] == ratios[4] == 1.0
    assert ratios[1] == pytest.approx(rates[1] / rates[0], abs=0.1)
    assert not list(tmp_path.iterdir())
