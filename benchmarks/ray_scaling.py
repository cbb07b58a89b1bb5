"""How much faster many processes are: `python -m benchmarks.ray_scaling [--quick]`.

Trains in this process, with Ray workers, and with controllers that have a worker each; then
searches with workers. Writes `results/ray_scaling.json` and `.md`.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.output import command_line, save, table
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.placers.parallel import Search, place_all
from placeto.support.ray_session import ray_session
from placeto.training import Trainer, train
from placeto.training.distributed import Scheme, train_with_workers


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    grouping: int = 128  # groups at most
    updates: int = 12  # of each training run; the first, of every controller, is not counted
    evaluations: int = 20_000  # of each search
    problems: int = 8  # that are searched for placements of
    workers: tuple[int, ...] = (1, 2, 4)  # each in turn

    def problem(self, extra: int = 0) -> PlacementProblem:
        """What is placed, with so many more groups."""
        graph, cluster = load_graph("inception_v3"), load_cluster("k80x4")
        return PlacementProblem(graph, cluster, self.grouping + extra)


QUICK = Plan(grouping=8, updates=3, evaluations=20, problems=2, workers=(1,))


def measure(plan: Plan) -> list[dict[str, Any]]:
    """Rows of a `rate`, and its `ratio` to the first of the same `what`; 0 workers: no Ray."""
    problem = plan.problem()
    single = training_rate(problem, plan, train)
    found = [("synchronous", 0, 1, single)]
    for workers in plan.workers:
        run = partial(train_with_workers, scheme=Scheme(workers))
        found.append(("synchronous", workers, 1, training_rate(problem, plan, run)))
    found.append(("asynchronous", 0, 1, single))
    for count in plan.workers:
        run = partial(train_with_workers, scheme=Scheme(1, "asynchronous", count))
        found.append(("asynchronous", 1, count, training_rate(problem, plan, run, count)))
    found += [("search", workers, 1, search_rate(plan, workers)) for workers in plan.workers]
    rows = pd.DataFrame(found, columns=["what", "workers", "controllers", "rate"])
    rows["ratio"] = rows["rate"] / rows.groupby("what")["rate"].transform("first")
    return rows.to_dict("records")


def training_rate(
    problem: PlacementProblem, plan: Plan, run: Callable[..., Trainer], controllers: int = 1
) -> float:
    """Steps of episodes a second, from the end of the first updates on, one of each controller.

    These begin together: those just after the first would count as if they had taken no time.
    """
    config = Placeto2019Config(updates=plan.updates)
    times: list[float] = []

    def watch(*_: object) -> None:
        times.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        run([problem], config, Path(folder) / "run", watch=watch)
    steps = config.episodes * problem.num_groups * config.sweeps
    return steps * (len(times) - controllers) / (times[-1] - times[controllers - 1])


def search_rate(plan: Plan, workers: int) -> float:
    """Placements simulated a second, the start of the workers included."""
    settings = {"max_evaluations": plan.evaluations}
    problems = map(plan.problem, range(plan.problems))
    searches = [Search(problem, "annealing", 1e6, settings=settings) for problem in problems]
    with ray_session(None, workers):
        # Once without counting: what is compiled is kept on disk for all others.
        list(place_all(searches[:workers], workers))
        began = time.perf_counter()
        found = dict(place_all(searches, workers))
        seconds = time.perf_counter() - began
    return sum(getattr(each, "evaluations", 0) for each in found.values()) / seconds


def markdown(rows: Sequence[dict[str, Any]], cores: int) -> str:
    """The rows as a table."""
    header = ["", "controllers", "workers of each", "a second", "ratio"]
    cells = [
        [
            row["what"], str(row["controllers"]), str(row["workers"] or "no Ray"),
            f"{row['rate']:,.0f}", f"{row['ratio']:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return (
        f"On {cores} cores: steps of episodes a second in training, gradient included; placements "
        f"simulated a second in searches, start of the workers included.\n\n{table(header, cells)}"
    )


if __name__ == "__main__":
    quick = command_line("ray_scaling", "a few seconds; nothing is written").parse_args().quick
    cores = len(os.sched_getaffinity(0))
    rows = measure(QUICK if quick else Plan())
    if quick:
        print(markdown(rows, cores), end="")
    else:
        save("ray_scaling", {"cores": cores, "rows": rows}, markdown(rows, cores), indent=1)
