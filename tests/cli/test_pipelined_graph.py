"""Whatever takes a graph takes one of several microbatches: every command, on one real step."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import envs  # noqa: F401 (registers the environment)
from placeto import load_cluster, load_graph, save_cluster
from placeto.extraction import extract
from tests.cli.test_calibrate import hasty  # noqa: F401 (a fixture)
from tests.extraction.running import STEPS
from tests.measurement.conftest import fitted

COUNT = 2
ON = ("step.json.gz", "--cluster", "two.yaml")
SEARCH = ("--order", "1f1b", "--budget", "2")
TRAINED = ("--graphs", *ON, "--order", "1f1b", "--grouping", "8")


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """A step of two microbatches, in a file with its GraphDef beside it."""
    path = tmp_path_factory.mktemp("pipelined") / "step.json.gz"
    extract(f"{STEPS}:tiny?batch=8&microbatches={COUNT}").save(path)
    return path


@pytest.fixture(autouse=True)
def files(step, folder):
    """`step.json.gz` and `two.yaml` in the working folder."""
    for each in step.parent.iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    save_cluster(fitted(load_cluster("local-2")), Path("two.yaml"))


def test_it_is_shown(placeto):
    assert "a second" in placeto("show", *ON).out
    shown = placeto("show", "step.json.gz", "--json")
    assert (shown.status, shown.document["microbatches"]) == (0, COUNT)


def test_it_is_placed_simulated_drawn_and_measured(placeto):
    written = ("-o", "p.json", "--report", "r.html", "--json")
    placed = placeto("place", *ON, *SEARCH, *written)
    assert placed.status == 0
    simulated = placeto("simulate", *ON, "--placement", "p.json", "--json")
    assert simulated.document["step_time"] == placed.document["step_time"]
    assert "microbatch" in Path("r.html").read_text()
    effort = ("--steps", "3", "--warm-up", "1")
    measured = placeto("measure", *ON, "--placement", "p.json", *effort, "--json")
    assert measured.document["feasible"] is True
    assert len(measured.document["samples"]) == 3
    assert measured.document["in_order"] == 1


def test_an_order_of_its_own_is_found_and_kept(placeto):
    placed = placeto("place", *ON, "--budget", "3", "-o", "p.json", "--report", "r.html", "--json")
    named = placeto("place", *ON, "--budget", "3", "--set", "max_evaluations=200", "--json")
    assert (placed.status, named.status) == (0, 0)
    assert named.document["order"] != "ranks"
    assert placed.document["order"] == "ranks"
    assert placed.document["found_by"] == "ranks"
    assert placed.document["lower_bound"] <= placed.document["step_time"]
    simulated = placeto("simulate", *ON, "--placement", "p.json", "--json")
    assert simulated.document["step_time"] == placed.document["step_time"]
    assert "ranks" in Path("r.html").read_text()
    effort = ("--steps", "3", "--warm-up", "1")
    measured = placeto("measure", *ON, "--placement", "p.json", *effort, "--json")
    assert measured.document["in_order"] == 1


def test_placers_are_compared(placeto):
    methods = ["single", "stages", "etf", "scotch", "auto"]
    compared = placeto("compare", *ON, *SEARCH, "--methods", ",".join(methods), "--json")
    assert compared.status == 0
    assert [row["method"] for row in compared.document["rows"]] == methods


@pytest.mark.usefixtures("hasty")
def test_it_is_calibrated(placeto):
    effort = ("--steps", "3", "--traces", "2", "--keep-channels")
    argv = ("--cluster", "two.yaml", "--graph", "step.json.gz", "-o", "out")
    calibrated = placeto("calibrate", *argv, *effort, "--json")
    assert calibrated.status == 0
    found = load_graph(calibrated.document["files"][1])
    assert found.num_microbatches == COUNT
    assert (found.op_seconds["local-2-cpu"] > 0).any()


def test_an_agent_learns_of_it_and_is_evaluated(placeto):
    few = ("--updates", "1", "--episodes", "2", "--rounds", "1")
    assert placeto("train", *TRAINED, *few, "-o", "run").status == 0
    evaluated = placeto("evaluate", "--policy", "run", *TRAINED, "--json")
    assert evaluated.status == 0
    rows = {row["method"]: row for row in evaluated.document["rows"]}
    assert rows["best of 16"]["step_time"] <= rows["greedy"]["step_time"]
    greedy = rows["greedy"]
    assert greedy["examples_per_second"] == pytest.approx(8 / greedy["step_time"])


def test_it_is_an_environment():
    graph, cluster = load_graph("step.json.gz"), load_cluster("two.yaml")
    env = gym.make("DevicePlacement-v0", graph=graph, cluster=cluster, order="1f1b")
    observation, before = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    *_, info = env.step(1)
    assert np.isfinite([before["step_time"], info["step_time"]]).all()
