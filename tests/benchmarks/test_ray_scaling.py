"""The benchmark of many processes, in its quick form."""

from types import SimpleNamespace

from benchmarks import ray_scaling
from placeto.envs import generator
from placeto.models.placeto_2019.settings import Placeto2019Config


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
