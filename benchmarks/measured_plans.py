"""Plans of PyTorch pipelines chosen by short runs: `python -m benchmarks.measured_plans`.

Two models of `benchmarks.torch_pipelines` are calibrated with 2, 4 and 8 microbatches, and
`placeto place --pipeline --measure` runs, in two processes on the CPU, the plan of each number of
microbatches and schedule, and the whole module in one process. In the same steps ran what the
simulation alone would have chosen. Minutes a model on a quiet machine; what was measured stays in
`build`, and it goes on where it was stopped. Writes `results/measured_plans.json` and `.md`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import command_line, machine, results_folder, save, table_of
from benchmarks.torch_pipelines.__main__ import MICROBATCHES, calibrated, python
from placeto import save_cluster
from placeto.measurement.pytorch.detect import detect_cluster
from placeto.support.files import read_json, write_json

MODELS = ("gpt", "widening_mlp")
STEPS = 7
FOLDER = Path("build/measured-plans")


def measured(net: str, folder: Path, steps: int) -> dict[str, Any]:
    """What the command prints of a model that is calibrated first."""
    own = folder / net
    graphs = [str(own / f"{net}-{count}.json.gz") for count in MICROBATCHES]
    if not Path(graphs[-1]).exists():
        calibrated(net, folder)
    cluster, plan = str(own / "box-calibrated.yaml"), str(own / "plan.json")
    found: dict[str, Any] = json.loads(
        python(
            "-m", "placeto", "place", *graphs, "--cluster", cluster, "--pipeline", plan,
            "--measure", str(steps), "--json",
        )
    )  # fmt: skip
    return found


def figures(row: dict[str, Any]) -> dict[str, Any]:
    """The plan that was kept, the one that was simulated to be fastest, and the best process.

    `over simulated` and `over one` are how many times as fast the kept plan is, as medians of
    ratios within a round.
    """
    ran = [each for each in row["plans"] if each["measured_step_time"] is not None]
    plans = [each for each in ran if each["schedule"]]
    alone = [each for each in ran if not each["schedule"]]
    (kept,) = (each for each in plans if each["kept"])
    simulated = min(plans, key=lambda each: each["simulated_step_time"])
    one = min(alone, key=lambda each: each["measured_step_time"])

    def times_as_fast(other: dict[str, Any]) -> float:
        return float(np.median(np.array(other["samples"]) / np.array(kept["samples"])))

    return {
        "kept": kept, "simulated": simulated, "one": one,
        "over simulated": times_as_fast(simulated), "over one": times_as_fast(one),
    }  # fmt: skip


def markdown(found: dict[str, Any]) -> str:
    """A row a model."""

    def said(plan: dict[str, Any]) -> str:
        named = "" if plan["schedule"] is None else f"`{plan['schedule']}`, "
        return f"{1e3 * plan['measured_step_time']:.0f} ms, {named}M = {plan['microbatches']}"

    rows = []
    for net, row in found.items():
        each = figures(row)
        rows.append({
            "model": f"`{net}`",
            "one process": said(each["one"]),
            "best simulated": said(each["simulated"]),
            "chosen by runs": said(each["kept"]),
            "split at": ", ".join(f"`{point}`" for point in each["kept"]["split_points"]),
            "over simulated": f"{each['over simulated']:.2f}",
            "over one": f"{each['over one']:.2f}",
        })  # fmt: skip
    return table_of(rows)


def main() -> None:
    """Calibrates and measures each model."""
    wanted = command_line("measured_plans", "one model, few steps; results into build").parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_cluster(detect_cluster("box", processes=2), FOLDER / "box.yaml")
    kept, found = FOLDER / "measured.json", {}
    if kept.exists() and not wanted.quick:
        found = read_json(kept)
    for net in MODELS[1:] if wanted.quick else MODELS:
        if net not in found:
            print(f"{net}: calibration, runs", file=sys.stderr, flush=True)
            found[net] = measured(net, FOLDER, 3 if wanted.quick else STEPS)
        if not wanted.quick:
            write_json(kept, found)
    document = {"machine": machine(), "models": found}
    save("measured_plans", document, markdown(found), results_folder(wanted.quick))


if __name__ == "__main__":
    main()
