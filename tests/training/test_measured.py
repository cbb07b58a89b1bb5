"""Training on measured step times."""

import json
from pathlib import Path

import numpy as np

from placeto.envs import generator
from placeto.measurement import Measurement, MeasuringEvaluator, Runnable
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.simulation import simulate
from placeto.training.run import train

NOTHING = Runnable(Path("none"), "", (), (), "")
CONFIG = Placeto2019Config(
    updates=60,
    episodes=8,
    learning_rate=5e-3,
    final_learning_rate=5e-4,
    entropy_bonus=0.1,
    algorithm="ppo",
    baseline_episodes=32,
    rounds=2,
    keep=0.0,
)


class ThreeTimesAsSlow:
    """Stands for a runtime whose devices are slower than simulated, and fail now and then."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.runs = 0

    def measure(self, problem, devices, runnable, effort):
        self.runs += 1
        if self.runs % 5 == 0:
            return Measurement(reason="worker 1 was killed")
        return Measurement((3 * simulate(problem, devices).step_time,))


def test_measured_step_times_fall_and_the_log_shows_it(tmp_path):
    problem = generator.fork()
    runtime = ThreeTimesAsSlow(problem.cluster)
    evaluate = MeasuringEvaluator(runtime, runnables={problem.graph.name: NOTHING})
    trainer = train([problem], CONFIG, tmp_path, evaluate=evaluate)
    log = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    # Three times the 40 ms of one device, and the 30 ms of two: see the toy.
    assert log[0]["step_time"] > 0.095
    last = np.mean([row["step_time"] for row in log[-5:]])
    assert 0.09 <= last < 0.92 * log[0]["step_time"]
    assert log[-1]["best_step_time"] == trainer.best[0]
    assert abs(trainer.best[0] - 0.09) < 1e-9
    # Sixteen placements in all: each was run once, and once more where it had failed.
    assert trainer.evaluations > 16
    assert evaluate.runs == runtime.runs <= 16 + len(evaluate.failures)
    assert evaluate.failures
