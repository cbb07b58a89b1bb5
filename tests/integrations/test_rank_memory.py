"""A plan's memory against what two processes of PyTorch hold, tensor by tensor."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placeto.cluster import Channel, Cluster, Device
from placeto.extraction import extract
from placeto.placers.pipeline import plan_pipeline

HERE = "tests.integrations.rank_memory"
NAMES = ("one", "other")
PAIR = Cluster(
    "pair",
    tuple(Device(name, "k80", 2**34) for name in NAMES),
    (Channel("between", NAMES, NAMES, 1e12),),
)


SCHEDULES = {
    "gpt": ("gpipe", "1f1b"),
    "convolutions": ("gpipe", "1f1b", "interleaved"),
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Bytes of each process, by model and schedule: planned, and held."""
    folder, planned = tmp_path_factory.mktemp("plans"), {}
    for model in SCHEDULES:
        graph = extract(f"{HERE}:{model}?microbatches=4&loss=crossentropy").graph
        for schedule in SCHEDULES[model]:
            plan, _ = plan_pipeline(graph, PAIR, schedule)
            name = f"{model}-{schedule}.json"
            plan.save(folder / name)
            assert plan.processes == 2
            planned[name] = plan.peak_memory[:2]
    run = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            "-m", HERE, str(folder),
        ],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    held = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]
    return {name: (planned[name], [each[name] for each in held]) for name in planned}


@pytest.mark.parametrize(
    ("model", "schedule"), [(model, each) for model in SCHEDULES for each in SCHEDULES[model]]
)
def test_each_process_holds_what_the_plan_says(planned, model, schedule):
    expected, held = planned[f"{model}-{schedule}.json"]
    assert list(expected) == pytest.approx(held, rel=0.02)
