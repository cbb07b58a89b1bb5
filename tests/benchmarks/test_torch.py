"""The tables of what was measured of PyTorch, by hand."""

import pytest

from benchmarks import device_maps, torch_gpu
from benchmarks.torch_pipelines import __main__ as study

ROW = {
    "schedule": "1f1b", "plan": ["blocks.4"], "batch": 16, "single": 1.2,
    "predicted": {"blocks.3": 0.9, "blocks.4": 0.77, "head": 1.0},
    "seconds": {
        "one process, M = 1": [1.2, 1.4, 1.2], "one process, M = 8": [1.3, 1.5, 1.3],
        "blocks.3": [1.0, 1.4, 1.0], "blocks.4": [0.8, 1.4, 0.8], "head": [0.8, 0.7, 0.8],
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
    assert page[2].startswith("| `gpt` | 1200 ms | 1000 ms | 800 ms | `blocks.4` | 800 ms |")
    assert page[-1].startswith("Over an even split, uneven models, geometric mean: 1.25.")


def test_a_plan_of_one_stage_is_one_process():
    found = study.figures(ROW | {"plan": []}, "gpt")
    assert found["plan"] == found["alone"]
    assert found["predicted"] == 1.2


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
    own = {"step_time": 0.05, "moved": 2**20, "fits": True}
    theirs = {"step_time": 0.1, "moved": 0, "fits": False}
    rows = [
        {"model": "gpt", "limit": "both", "placeto": own, "accelerate": theirs},
        {"model": "gpt", "limit": "none", "placeto": own, "accelerate": None},
    ]
    rows.append(rows[0] | {"accelerate": theirs | {"fits": True}})
    first, second, third = device_maps.markdown(rows).splitlines()[2:]
    assert first == "| `gpt` | both | 50 ms | 1 MiB | 100 ms, does not fit | 0 B |  |"
    assert "uses the disk" in second
    assert third == "| `gpt` | both | 50 ms | 1 MiB | 100 ms | 0 B | 0.50 |"
