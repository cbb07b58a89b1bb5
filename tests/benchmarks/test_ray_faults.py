"""The benchmark of workers that are killed: one short run."""

from benchmarks import ray_faults
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.support.ray_session import ray_session
from placeto.training.distributed import Scheme


def test_a_worker_is_killed_and_nothing_is_lost():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24)
    config = Placeto2019Config(updates=4, checkpoint_every=ray_faults.CHECKPOINT_EVERY)
    with ray_session(None, 1):
        run = ray_faults.one_run(problem, config, Scheme(1), every=1.0)
    assert run["kills"] > 0
    assert run["lost"] == []
    assert run["best"] < 1.0


def test_the_table_says_what_was_lost():
    good = {"best": 0.25, "kills": 0, "seconds": 1.0, "lost": []}
    bad = {"best": 0.5, "kills": 3, "seconds": 1.0, "lost": ["the last checkpoint"]}
    row = {"scheme": "synchronous", "updates": 7, "alone": good, "killed": bad}
    assert ray_faults.markdown([row], 20.0).splitlines()[-1] == (
        "| synchronous | 7 | 250 ms | 500 ms | 2.000 | 3 | the last checkpoint |"
    )
