"""A policy trained on measured step times: `python -m benchmarks.measured_training`, minutes.

Once every placement that an episode comes by is run on the two workers of `local-2`; once only
`FEW_RUNS` are, which correct the costs that all others are simulated with. In the end the start,
what the policies do by themselves, and the fastest placements that ran are run in turn, several
times, as what was fastest once may have been lucky.
"""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.output import RESULTS, command_line, machine, save, span, table
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.heuristics.initial import all_on
from placeto.measurement import (
    CorrectingEvaluator,
    Effort,
    MeasuringEvaluator,
    Runtime,
    find_runnable,
)
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.training.run import train

BUILD = Path("build") / "measured_training"
SOURCE = "benchmarks.measured_training:two_towers"
GROUPS = 6
EFFORT = Effort(warm_up=2, steps=9, max_steps=25, precision=0.05, deadline_seconds=120.0)
ROUNDS = 5
ALL, FEW = "all", "few"
FEW_RUNS = 12
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
    runnable = find_runnable(problem.graph)
    runnables = {problem.graph.name: runnable}
    compared, trained = {"start": all_on(problem, 0)}, {}
    with Runtime(problem.cluster) as runtime:
        evaluators = {
            ALL: MeasuringEvaluator(runtime, EFFORT, runnables),
            FEW: CorrectingEvaluator(runtime, FEW_RUNS, EFFORT, runnables),
        }
        for name, evaluate in evaluators.items():
            began = time.monotonic()
            trainer = train([problem], config, BUILD / name, progress=print, evaluate=evaluate)
            seconds = time.monotonic() - began
            trained[name] = {
                "runs": evaluate.runs, "failures": evaluate.failures, "seconds": seconds,
                "updates": log(BUILD / name),
            }  # fmt: skip
            learned = trainer.roll_out(0, episodes=1, greedy=True).devices[0]
            compared[f"learned, {name}"] = learned
            compared[f"fastest, {name}"] = evaluate.fastest(problem)
        many = np.stack(list(compared.values()))
        turns = [runtime.compare(problem, many, runnable, EFFORT) for _ in range(rounds)]
    return {
        "machine": machine(), "cluster": problem.cluster.name, "groups": problem.num_groups,
        "effort": asdict(EFFORT), "training": config.to_document(), "trained": trained,
        "confirmed": {
            name: [turn[number].step_time for turn in turns if turn[number].feasible]
            for number, name in enumerate(compared)
        },
        "devices": {name: np.asarray(devices).tolist() for name, devices in compared.items()},
    }  # fmt: skip


def log(directory: Path) -> list[dict[str, Any]]:
    """What training wrote of its updates."""
    keys = ("update", "step_time", "best_step_time", "entropy")
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [{key: json.loads(line)[key] for key in keys} for line in lines]


def markdown(found: dict[str, Any]) -> str:
    """The logs and the confirmation."""
    all_run, few_run = (found["trained"][name] for name in (ALL, FEW))
    updates = len(all_run["updates"])
    rows = []
    for index in sorted({*range(0, updates, max(updates // 8, 1)), updates - 1}):
        cells = [
            f"{1e3 * each['updates'][index][key]:.0f}"
            for each in (all_run, few_run)
            for key in ("step_time", "best_step_time")
        ]
        rows.append([str(all_run["updates"][index]["update"]), *cells])
    start = found["confirmed"]["start"]
    confirmed = [
        [name, f"{1e3 * (step := median(times)):.0f}", span(times), f"{step / median(start):.2f}"]
        for name, times in found["confirmed"].items()
        if times  # none if it never ran
    ]
    header = ["update", "all run: mean of its episodes' ends", "best until then"]
    header += ["few run: mean of its episodes' ends", "best until then"]
    return (
        f"Step times, ms, of {updates} updates; all placements that were met, "
        f"{all_run['runs']}, were run in {all_run['seconds']:.0f} s, and "
        f"{few_run['runs']} in {few_run['seconds']:.0f} s, which corrected the costs that the "
        "others were simulated with:\n\n"
        + table(header, rows)
        + f"\nRun in turn in the end, ms, median of {len(start)} rounds:\n\n"
        + table(["placement", "step", "rounds", "ratio to the start"], confirmed)
    )


if __name__ == "__main__":
    parser = command_line("measured_training", "two updates, one round; results into build/")
    quick = parser.parse_args().quick
    found = study(replace(CONFIG, updates=2), 1) if quick else study(CONFIG, ROUNDS)
    save("measured_training", found, markdown(found), BUILD if quick else RESULTS)
