"""The benchmark of many processes, in its quick form."""

from types import SimpleNamespace

import pytest

from benchmarks import ray_scaling
from placeto.envs import generator
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.support.ray_session import ray_session


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


def test_what_controllers_began_together_is_not_counted(monkeypatch):
    """Four controllers, an update of each at 1 s, 2 s and 3 s: four updates a second."""
    now = SimpleNamespace(perf_counter=iter([1.0] * 4 + [2.0] * 4 + [3.0] * 4).__next__)
    monkeypatch.setattr(ray_scaling, "time", now)

    def run(problems, config, directory, watch):
        for _ in range(config.updates):
            watch(None, 0.0)

    problem = generator.fork()
    rate = ray_scaling.training_rate(problem, ray_scaling.Plan(updates=12), run, 4)
    config = Placeto2019Config()
    assert rate == 4 * config.episodes * problem.num_groups * config.sweeps
