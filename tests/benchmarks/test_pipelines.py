"""Which cuts the study of pipelines runs, and its tables, by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks import pipelines
from benchmarks.measuring import CALIBRATED, Study
from tests.builders import make_cluster, make_graph, make_problem


def row(*samples, predicted=0.5):
    return {"predicted": predicted, "samples": list(samples), "transfers": 3, "devices": "01"}


# Either worker takes 20 s, and in the second turn all is twice as slow.
BESIDE = [[20.0, 40.0], [20.0, 40.0]]
STEP = {
    "order": "1f1b", "beside": BESIDE, "in_order": 1.0,
    "rows": {
        "layer cut at 0.5": row(18.0, 36.0), "layer cut at 0.3": row(12.0, 24.0),
        "expert": row(16.0, 32.0), "stages": row(14.0, 28.0), "auto": row(10.0, 20.0),
    },
}  # fmt: skip
SLOWER = STEP | {"in_order": 0.9, "rows": STEP["rows"] | {"auto": row(15.0, 30.0, predicted=0.6)}}
FOUND = {
    "singles": {"1": [[30.0, 60.0], [20.0, 40.0]], "4": [[20.0, 40.0], [20.0, 40.0]]},
    "steps": {"2": SLOWER, "4": STEP},
    pipelines.EVERY_CUT: {
        "microbatches": 4, "beside": [[10.0, 20.0], [10.0, 20.0]],  # in other, faster turns
        "rows": {
            "auto": row(5.5, 11.0), "layer cut at 0.3": row(6.5, 13.0),
            "layer cut at 0.45": row(6.0, 13.0), "layer cut at 0.5": row(15.0, 20.0),
        },
    },
    pipelines.MEASURED: {"microbatches": 4, "samples": [9.0, 18.0], "beside": BESIDE},
}  # fmt: skip


def test_the_even_cut_and_the_fastest_of_all_are_run():
    names = [f"op{number}" for number in range(20)]
    # A chain there and back: a layer is an op and its gradient, as far from the end. What crosses
    # a cut is sent once on either way, and the fewest bytes are the fastest cut.
    sizes = {1: 1, 17: 1, 5: 2, 13: 2, 8: 3, 10: 3}
    tensors = [(one, sizes.get(at, 10), [two]) for at, (one, two) in enumerate(pairwise(names))]
    problem = make_problem(make_graph(dict.fromkeys(names, 1.0), tensors), make_cluster(2))
    found = pipelines.best_cuts(problem)
    assert list(found) == [f"layer cut at {share}" for share in (0.5, 0.2, 0.6, 0.9)]
    layer = np.minimum(np.arange(20), np.arange(20)[::-1])
    for devices, layers in zip(found.values(), (5, 2, 6, 9), strict=True):
        assert devices.tolist() == (layer >= layers).astype(int).tolist()


def test_ratios_are_over_the_single_worker_with_its_own_microbatches():
    assert pipelines.best_single(FOUND) == 4
    assert pipelines.best(FOUND, "auto") == ("4", pytest.approx(0.5), 0.5)
    first, *_ = pipelines.markdown({"one": FOUND}, {"one": "keras:A?batch=60"}).splitlines()[2:]
    # 30 s are the median of both turns.
    assert first.startswith("| `one` | 30000 (4) | 0.90 (2) | 0.60 (2) | 0.80 (2) | 0.70 (2) |")
    assert first.endswith("| 0.50 (4) | 0.50 | 0.45 (4) | 90.0% | 2.0, 4.0 |")


def test_a_row_of_each_number_of_microbatches_says_how_far_off_it_is():
    two, four = pipelines.by_microbatches({"one": FOUND})
    assert two[:3] == ["`one`", "2", "1f1b"]
    assert two[3:] == ["0.70", "0.50", "0.75", "0.60", "3", "29%"]
    assert four[-1] == "25%"


def test_the_best_of_all_cuts_is_beside_what_ran_in_the_same_turns():
    assert pipelines.best_cut(FOUND) == ("2", pytest.approx(0.6), 0.5)
    # 6 and 13 are 0.6 and 0.65 of the single workers', 6.5 and 13 are 0.65 both times.
    assert pipelines.by_cut({"one": FOUND}) == [["`one`", "4", "0.62", "0.45", "0.55"]]


def test_what_transfers_cost_is_measured_with_the_first_model(tmp_path, monkeypatch):
    made = []

    class Prepared(Study):
        def prepare(self):
            made.append(self.plan)
            path = self.folder / CALIBRATED
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            for name in self.plan.sources:
                (path.parent / f"{name}.json.gz").touch()

        def case(self, name, grouping=None):
            return name, grouping

    monkeypatch.setattr(pipelines, "Study", Prepared)
    sources = {"a": "keras:A?batch=8", "b": "keras:B?batch=8"}
    plan = pipelines.Pipelines(sources, (1, 4), 1.0, 2.0, 1)
    one, other = pipelines.steps(plan, tmp_path, ("a", "b"))
    assert made[0].sources == {
        f"a_{count}": f"keras:A?batch=8&microbatches={count}" for count in (1, 4)
    }
    assert made[0].cluster == "local-2"
    assert "--keep-channels" not in made[0].calibration
    assert made[1].cluster == str(tmp_path / "a" / CALIBRATED)
    assert "--keep-channels" in made[1].calibration
    assert other.cases == {1: ("b_1", "auto"), 4: ("b_4", "auto")}
    # What is calibrated keeps its numbers of microbatches.
    (again,) = pipelines.steps(replace(plan, microbatches=(1, 2, 4, 8)), tmp_path, ("a",))
    assert again.cases == one.cases
