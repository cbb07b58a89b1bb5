"""A policy trained on measured step times: `python -m benchmarks.measured_training`, minutes.

Every placement that an episode comes by is run on the two workers of `local-2`. In the end the
start, what the policy does by itself, and the fastest placement met are run in turn, several times,
as what was fastest once may have been lucky.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.output import RESULTS, command_line, machine, save, span, table
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort, MeasuringEvaluator, Runtime, find_runnable
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.training.run import train

BUILD = Path("build") / "measured_training"
SOURCE = "benchmarks.measured_training:two_towers"
GROUPS = 6
EFFORT = Effort(warm_up=2, steps=9, max_steps=25, precision=0.05, deadline_seconds=120.0)
ROUNDS = 5
# Most of the 64 placements are met, each is run once. The settings were chosen in the simulator.
CONFIG = Placeto2019Config(
    updates=30, episodes=16, learning_rate=5e-3, final_learning_rate=1e-3, entropy_bonus=0.1,
    algorithm="ppo", baseline_episodes=64, rounds=2, keep=0.0,
)  # fmt: skip


def two_towers(rows: int = 512, width: int = 1024, layers: int = 3) -> Any:
    """A recommender's training step: users and items, each through a tower of dense layers.

    The score of a pair is the product of the towers' outputs (Yi et al. 2019, RecSys).
    """
    import tensorflow as tf

    def tower(name: str) -> list[Any]:
        drawn = (tf.random.normal((width, width), stddev=width**-0.5) for _ in range(layers))
        return [tf.Variable(each, name=f"{name}_{layer}") for layer, each in enumerate(drawn)]

    towers = [tower("user"), tower("item")]
    signature = [tf.TensorSpec((rows, width), name=name) for name in ("users", "items")]

    @tf.function(input_signature=signature)
    def step(users: Any, items: Any) -> Any:
        with tf.GradientTape() as tape:
            outputs = []
            for inputs, weights in zip((users, items), towers, strict=True):
                hidden = inputs
                for weight in weights:
                    hidden = tf.nn.relu(tf.matmul(hidden, weight))
                outputs.append(hidden)
            scores = tf.reduce_mean(outputs[0] * outputs[1], axis=1)
            loss = tf.reduce_mean((scores - 1.0) ** 2)
        weights = [weight for tower in towers for weight in tower]
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    return step


def study(config: Placeto2019Config, rounds: int) -> dict[str, Any]:
    """Trains, and runs placements in turn in the end, so many rounds; all anew, in `BUILD`."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    path = BUILD / "two_towers.json.gz"
    # In a process of its own: TensorFlow would stay in this one.
    command = [sys.executable, "-m", "placeto", "extract", SOURCE, "-o", str(path)]
    subprocess.run(command, check=True)
    problem = PlacementProblem(load_graph(path), load_cluster("local-2"), GROUPS)
    runnable, runtime = find_runnable(problem.graph), Runtime(problem.cluster)
    with MeasuringEvaluator(runtime, EFFORT, {problem.graph.name: runnable}) as evaluate:
        trainer = train([problem], config, BUILD / "run", progress=print, evaluate=evaluate)
        training_runs = evaluate.runs
        compared = {
            "start": all_on(problem, 0),
            "learned": trainer.roll_out(0, episodes=1, greedy=True).devices[0],
            "fastest": evaluate.fastest(problem),
        }
        seconds: dict[str, list[float]] = {name: [] for name in compared}
        for _, (name, devices) in product(range(rounds), compared.items()):
            measurement = runtime.measure(problem, devices, runnable, EFFORT)
            if measurement.feasible:
                seconds[name].append(measurement.step_time)
    lines = (BUILD / "run" / "metrics.jsonl").read_text().splitlines()
    keys = ("update", "step_time", "best_step_time", "entropy")
    return {
        "machine": machine(), "cluster": problem.cluster.name, "groups": problem.num_groups,
        "effort": asdict(EFFORT), "training": config.to_document(),
        "runs": training_runs, "failures": evaluate.failures,
        "updates": [{key: json.loads(line)[key] for key in keys} for line in lines],
        "confirmed": seconds,
        "devices": {name: np.asarray(devices).tolist() for name, devices in compared.items()},
    }  # fmt: skip


def markdown(found: dict[str, Any]) -> str:
    """The log and the confirmation."""
    updates, start = found["updates"], found["confirmed"]["start"]
    every = range(0, len(updates), max(len(updates) // 8, 1))
    log = [
        [str(row["update"]), f"{1e3 * row['step_time']:.0f}", f"{1e3 * row['best_step_time']:.0f}"]
        for row in (updates[index] for index in sorted({*every, len(updates) - 1}))
    ]
    confirmed = [
        [name, f"{1e3 * (step := median(times)):.0f}", span(times), f"{step / median(start):.2f}"]
        for name, times in found["confirmed"].items()
        if times  # none if it never ran
    ]
    return (
        f"Measured step times, ms, of {len(updates)} updates; {found['runs']} placements were run:"
        "\n\n"
        + table(["update", "mean of its episodes' ends", "best until then"], log)
        + f"\nRun in turn in the end, ms, median of {len(start)} rounds:\n\n"
        + table(["placement", "step", "rounds", "ratio to the start"], confirmed)
    )


if __name__ == "__main__":
    parser = command_line("measured_training", "two updates, one round; results into build/")
    quick = parser.parse_args().quick
    found = study(replace(CONFIG, updates=2), 1) if quick else study(CONFIG, ROUNDS)
    save("measured_training", found, markdown(found), BUILD if quick else RESULTS)
