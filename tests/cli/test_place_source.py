"""`placeto place` on a source that it extracts, with as many microbatches as are best."""

from functools import partial

import pytest

from placeto import load_graph
from placeto.placers import microbatches
from tests.placers.split_steps import BATCH, SOURCE, WORK, seconds, split_step

FIXED = 0.6
PLACE = ("place", SOURCE, "--cluster", "duo.yaml", "--grouping", "none", "--method", "exact")


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    monkeypatch.setattr(microbatches, "extract", partial(split_step, fixed=FIXED))


def test_the_curve_is_told_and_the_best_can_be_used(placeto):
    result = placeto(*PLACE, "--json", "--save-graph", "g.json.gz", "-o", "p.json")
    assert result.status == 0
    row = result.document
    assert row["save_graph"] == "g.json.gz"
    tried = row["microbatches"]
    assert [each["microbatches"] for each in tried] == [1, 2, 4, 8, 16, 32]
    for each in tried:
        took = seconds(each["microbatches"], FIXED)
        assert each["step_time"] == pytest.approx(took)
        assert each["examples_per_second"] == pytest.approx(BATCH / took)
        alone = each["microbatches"] * 2 * (WORK / each["microbatches"] + FIXED)
        assert each["single_device_step_time"] == pytest.approx(alone)
        assert each["feasible"]
    assert [each["microbatches"] for each in tried if each["chosen"]] == [4]
    assert row["step_time"] == tried[2]["step_time"]
    assert "chosen" in result.err
    assert load_graph("g.json.gz").num_microbatches == 4
    argv = ("g.json.gz", "--cluster", "duo.yaml", "--placement", "p.json", "--json")
    again = placeto("simulate", *argv).document
    for key in ("step_time", "examples_per_second", "placement", "order"):
        assert again[key] == row[key]


def test_an_order_of_microbatches_is_for_all_but_one(placeto):
    tried = placeto(*PLACE, "--json", "--order", "gpipe").document["microbatches"]
    assert [each["order"] for each in tried] == ["fifo"] + ["gpipe"] * 5


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ((*PLACE, "-o", "p.json"), "--output and --measure need its graph; give --save-graph"),
        ((*PLACE, "--measure"), "--output and --measure need its graph; give --save-graph"),
        ((*PLACE, "--save-graph", "g.pb"), "ends in .json or .json.gz"),
        (("place", "fork.json", *PLACE[2:], "--save-graph", "g.json"), "goes with a source"),
    ],
)
def test_what_does_not_go_together_is_refused(placeto, argv, complaint):
    assert complaint in placeto(*argv).complaint
