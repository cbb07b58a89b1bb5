"""The tables of what was measured of PyTorch, by hand."""

import numpy as np
import pytest

from benchmarks import device_maps, measured_plans, torch_gpu, torch_zoo
from benchmarks.torch_pipelines import __main__ as study
from placeto import ComputationGraph


def plan(step, *points):
    return {"schedule": "1f1b", "plan": list(points), "batch": 16, "single": 1.2, "step": step}


ROW = {
    "plans": {"2": plan(0.9, "blocks.5"), "4": plan(0.77, "blocks.4"), "8": plan(0.8, "blocks.4")},
    "seconds": {
        "one process, M = 1": [1.2, 1.4, 1.2], "blocks.3, M = 4": [1.0, 1.4, 1.0],
        "blocks.4, M = 4": [0.8, 1.4, 0.8], "blocks.4, M = 8": [0.9, 0.7, 0.9],
        "blocks.5, M = 2": [1.0, 1.0, 1.0],
    },
}  # fmt: skip


def test_figures_are_medians_of_rounds_and_of_ratios_within_them():
    found = study.figures(ROW, "gpt")
    assert found["alone"] == 1.2
    assert (found["even"], found["plan"], found["best"]) == (1.0, 0.8, 0.8)
    assert found["over even"] == pytest.approx(1.0 / 0.8)
    assert found["over alone"] == pytest.approx(1.2 / 0.8)
    assert found["behind best"] == pytest.approx(0.0)
    assert found["error"] == pytest.approx(0.77 / 0.8 - 1)
    page = study.markdown({"gpt": ROW}).splitlines()
    assert page[2].startswith("| `gpt` | 16 | 4 | 1200 ms | 1000 ms | 800 ms | `blocks.4` | 800 ms")
    assert page[-1].startswith("Over an even split, uneven models, geometric mean: 1.25.")


def test_another_number_of_microbatches_may_have_been_faster():
    seconds = ROW["seconds"] | {"blocks.4, M = 8": [0.4, 0.7, 0.4]}
    found = study.figures(ROW | {"seconds": seconds}, "gpt")
    assert found["best"] == 0.4
    assert found["behind best"] == pytest.approx(1.0)


def test_a_plan_of_one_stage_is_one_process():
    found = study.figures(ROW | {"plans": {"2": plan(1.15)}, "seconds": ROW["seconds"]
        | {"blocks.3, M = 2": [2.0, 2.0, 2.0]}}, "gpt")  # fmt: skip
    assert found["plan"] == found["alone"]
    assert found["predicted"] == 1.15


def test_tables_of_a_gpu():
    costs = {
        "ops": 3, "step": 0.004, "passes": [[0.003, 0.002]] * 3, "roofline": 0.001,
        "types": {"mm": [0.0018, 0.0009, 2], "add": [0.0001999, 0.0001, 1], "tiny": [1e-7, 0, 1]},
    }  # fmt: skip
    memory = {"&optimizer=adam": {"allocated": 100 * 2**20, "simulated": 98 * 2**20}}
    page = torch_gpu.markdown({"gpt": {"costs": costs, "memory": memory}})
    assert "| `gpt` | 3 | 4.00 ms | 3.00 ms | 2.00 ms | 1.00 ms | 0.25 |" in page
    assert "| `mm` | 2 | 90.0% | 1.80 ms | 0.90 ms | 0.50 |" in page
    assert "tiny" not in page
    assert "| `gpt` | 100 MiB, -2.0% |" in page


def test_a_table_of_device_maps():
    own = {"step_time": 0.05, "loaded": 2**20, "fits": True}
    theirs = {"step_time": 0.1, "loaded": 0, "fits": False}
    rows = [{"model": "gpt", "limit": "both", "placeto": own, "accelerate": theirs}]
    rows.append(rows[0] | {"accelerate": theirs | {"fits": True}})
    ran = {
        "model": "gpt", "weights": 2**30, "loaded": 2**29,
        "predicted": {"memory": 0.1, "disk": 0.6},
        "seconds": {"memory": [0.2, 0.3, 0.1], "disk": [0.7, 0.5, 0.9]},
    }  # fmt: skip
    first, second, *_, last = device_maps.markdown(rows, [ran]).splitlines()[2:]
    assert first == "| `gpt` | both | 50 ms | 1 MiB | 100 ms, does not fit | 0 B |  |"
    assert second == "| `gpt` | both | 50 ms | 1 MiB | 100 ms | 0 B | 0.50 |"
    assert last == "| `gpt` | 1 GiB | 512 MiB | 100 ms | 200 ms | 600 ms | 700 ms |"


def test_what_a_map_takes_of_the_main_device():
    module = ["a", "b", "a", "b"]
    chain = ComputationGraph(
        name="chain", op_names=["a.w", "b.w", "a/mm", "b/mm"],
        op_types=["parameter", "parameter", "mm", "mm"],
        op_seconds={"a100": np.array([0, 0, 1.0, 1.0]), "p100": np.array([0, 0, 3.0, 3.0])},
        tensor_producer=np.array([0, 1, 2]), tensor_bytes=np.array([0, 0, 7]),
        edge_tensor=np.array([0, 1, 2]), edge_consumer=np.array([2, 3, 3]),
        param_bytes=np.array([600, 300, 0, 0]),
        meta={"pytorch": {"modules": module, "states": {"a.w": ["a.w"], "b.w": ["b.w"]}}},
    )  # fmt: skip
    cluster = device_maps.box((1000, 10, 2000, 2000))
    found = device_maps.row(chain, cluster, np.array([2, 0, 2, 0]))
    assert found["loaded"] == 600
    assert found["step_time"] == pytest.approx(2, abs=1e-4)
    # The weights of b, those of a while it is computed, and what it makes.
    assert found["peak"][0] == 300 + 600 + 7
    assert found["fits"]
    assert not device_maps.row(
        chain, device_maps.box((900, 10, 2000, 2000)), np.array([2, 0, 2, 0])
    )["fits"]


def ran(schedule, count, simulated, samples, kept=False):
    return {
        "schedule": schedule, "microbatches": count, "simulated_step_time": simulated,
        "measured_step_time": float(np.median(samples)) if samples else None,
        "samples": samples, "split_points": ["head"], "kept": kept,
    }  # fmt: skip


def test_a_plan_that_runs_chose_is_beside_what_the_simulation_would_have_chosen():
    plans = [
        ran("1f1b", 2, 1.0, [3.0, 6.0, 4.0]), ran("1f1b", 4, 1.5, [2.0, 3.0, 4.0], kept=True),
        ran("gpipe", 4, 0.5, []), ran(None, 1, None, [5.0, 9.0, 12.0]),
        ran(None, 2, None, [6.0, 9.5, 9.5]),
    ]  # fmt: skip
    found = measured_plans.figures({"plans": plans})
    assert found["simulated"] is plans[0]  # gpipe was not run
    assert found["kept"] is plans[1]
    assert found["one"] is plans[3]
    assert found["over simulated"] == 1.5  # of 1.5, 2 and 1
    assert found["over one"] == 3.0  # of 2.5, 3 and 3
    page = measured_plans.markdown({"gpt": {"plans": plans}})
    assert "| `gpt` | 9000 ms, M = 1 | 4000 ms, `1f1b`, M = 2 | 3000 ms, `1f1b`, M = 4 |" in page


def test_what_of_a_zoo_is_imported():
    found = {
        "a": {"library": "timm", "ops": 7, "edges": 9},
        "b": {"library": "timm", "ops": 5, "edges": 9},
        "c": {"library": "timm", "reason": "benchmarks.torch_zoo:from_timm?name=c: TypeError: x|y"},
        "d": {"library": "transformers", "traceback": "Traceback\n  line\nKeyError: 3\n"},
    }
    page = torch_zoo.markdown(found)
    assert "| timm | 3 | 2 | 1 | 0 | 5 to 7 |" in page
    assert "| transformers | 1 | 0 | 0 | 1 |" in page
    assert "| `c` | TypeError: x\\|y |" in page
    assert page.endswith("Imported, with their ops: `a` 7, `b` 5.\n")
