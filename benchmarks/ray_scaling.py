"""How much faster many processes are: `python -m benchmarks.ray_scaling`.

Trains Placeto's policy on `inception_v3` and `k80x4` in this process, with 1, 2 and 4 Ray workers,
and with 1, 2 and 4 controllers that have a worker each; then searches for placements of eight
problems with 1, 2 and 4 workers. Writes `results/ray_scaling.json` and `.md`. `--quick` does little
of it, and writes nothing.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.output import command_line, save, table_of
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


QUICK = Plan(grouping=8, updates=3, evaluations=20, problems=2, workers=(1,))


def measure(plan: Plan) -> list[dict[str, Any]]:
    """Rows of `what`, `workers` (of each controller; 0: no Ray), `controllers`, `rate`, `ratio`.

    Rates are steps of episodes a second, and placements simulated a second; ratios are to the first
    row of the same `what`.
    """
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"), plan.grouping)
    rows: list[dict[str, Any]] = []

    def add(what: str, workers: int, controllers: int, rate: float) -> None:
        first = next((row["rate"] for row in rows if row["what"] == what), rate)
        row = {"what": what, "workers": workers, "controllers": controllers, "rate": rate}
        rows.append({**row, "ratio": rate / first})

    single = training_rate(problem, plan, train)
    add("synchronous", 0, 1, single)
    for workers in plan.workers:
        run = partial(train_with_workers, scheme=Scheme(workers))
        add("synchronous", workers, 1, training_rate(problem, plan, run))
    add("asynchronous", 0, 1, single)
    for controllers in plan.workers:
        run = partial(train_with_workers, scheme=Scheme(1, "asynchronous", controllers))
        add("asynchronous", 1, controllers, training_rate(problem, plan, run, controllers))
    for workers in plan.workers:
        add("search", workers, 1, search_rate(plan, workers))
    return rows


def training_rate(
    problem: PlacementProblem, plan: Plan, run: Callable[..., Trainer], controllers: int = 1
) -> float:
    """Steps of episodes a second, to the end of the last update.

    Counted is from the end of the first updates on, one of each controller: they begin together,
    and those that came just after the first would count as if they had taken no time.
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
    graph, cluster = load_graph("inception_v3"), load_cluster("k80x4")
    problems = [
        PlacementProblem(graph, cluster, plan.grouping + extra) for extra in range(plan.problems)
    ]
    settings = {"max_evaluations": plan.evaluations}
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
    text = table_of([
        {
            "": row["what"],
            "controllers": str(row["controllers"]),
            "workers of each": str(row["workers"] or "no Ray"),
            "a second": f"{row['rate']:,.0f}",
            "ratio": f"{row['ratio']:.2f}",
        }
        for row in rows
    ])  # fmt: skip
    return (
        f"On {cores} cores: steps of episodes a second in training, gradient included; placements "
        f"simulated a second in searches, start of the workers included.\n\n{text}"
    )


def main() -> None:
    """Measures, prints the table, and writes it unless that was the quick form."""
    quick = command_line("ray_scaling", "a few seconds; nothing is written").parse_args().quick
    cores = len(os.sched_getaffinity(0))
    rows = measure(QUICK if quick else Plan())
    text = markdown(rows, cores)
    if quick:
        print(text, end="")
    else:
        save("ray_scaling", {"cores": cores, "rows": rows}, text, indent=1)


if __name__ == "__main__":
    main()
