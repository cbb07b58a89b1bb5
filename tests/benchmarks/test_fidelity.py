from dataclasses import replace

import pytest

from benchmarks import fidelity
from benchmarks.alternating import row_of
from benchmarks.held import Cost
from benchmarks.splits import branches_apart, layer_of_group, splits
from placeto import PlacementProblem, simulate
from tests.builders import make_cluster, make_graph, make_problem

# Two branches between `start` and `loss`, and back: 2 s each way on either branch.
TENSORS = [
    ("start", 1, ["left", "right"]),
    ("left", 1, ["loss"]),
    ("right", 1, ["loss"]),
    ("loss", 1, ["d_left", "d_right"]),
    ("d_left", 1, ["d_start"]),
    ("d_right", 1, ["d_start"]),
]
SECONDS = {"start": 1, "left": 2, "right": 2, "loss": 1, "d_left": 2, "d_right": 2, "d_start": 1}
PROBLEM = make_problem(make_graph(SECONDS, TENSORS), make_cluster(2))


def row(
    label: str,
    measured: float | None,
    predicted: float,
    devices: str = "01",
    runtime: str = "now",
) -> dict:
    return {
        "label": label, "family": "cut", "runtime": runtime, "devices": devices,
        "measured": measured, "predicted": predicted, "held": 2 * predicted,
        "reason": "", "runs": [],
    }  # fmt: skip


def test_figures_by_hand():
    rows = [row("a", 1.0, 1.1), row("b", 2.0, 1.0), row("c", 4.0, 4.0)]
    found = fidelity.figures(rows, "predicted")
    assert found["placements"] == 3
    assert found["error"] == pytest.approx((0.1 + 0.5 + 0.0) / 3)
    assert found["bias"] == pytest.approx((0.1 - 0.5 + 0.0) / 3)
    assert found["spearman"] == pytest.approx(0.5)  # ranks 1 2 3 against 2 1 3
    assert found["best"] == 2.0
    assert found["close"] == 0.0  # the only subset of three is all of them
    assert fidelity.figures(rows, "held")["bias"] == pytest.approx((1.2 + 0.0 + 1.0) / 3)


def test_measurements_against_themselves():
    rounds = [[1.0, 1.1, 0.9], [2.0, 2.5, 5.0], [3.0, 3.5, 4.0]]  # by row: ranks 123, 123, 132
    rows = [{"runs": [{"samples": [time]} for time in times]} for times in rounds]
    found = fidelity.again(rows)
    assert found["spearman"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    # Three rounds of reliability 2/3 together: 3 r / (1 + 2 r) = 6/7.
    assert found["most"] == pytest.approx((6 / 7) ** 0.5)


def test_what_is_judged():
    rows = [
        row("single", 1.0, 1.0, "00"), row("failed", None, 1.0), row("split", 1.0, 1.0),
        row("earlier", 1.0, 1.0, runtime="before"),
    ]  # fmt: skip
    assert [each["label"] for each in fidelity.judged(rows, "now")] == ["split"]
    assert [each["label"] for each in fidelity.judged(rows, "before")] == ["earlier"]


def test_splits_are_named_and_on_both_devices():
    found = list(splits(PROBLEM))
    labels = [split.label for split in found]
    assert len(labels) == len(set(labels))
    assert [split.label for split in splits(PROBLEM)] == labels
    for split in found:
        assert split.devices.shape == (7,)
        assert set(split.devices.tolist()) <= {0, 1}
    assert len({split.devices.tobytes() for split in found}) == len(found)
    assert [split.label for split in found if len(set(split.devices.tolist())) == 1] == [
        "all on 0", "all on 1",
    ]  # fmt: skip
    by_label = {split.label: split.devices.tolist() for split in found}
    assert by_label["all on 1"] == [1] * 7
    # 11 s in all; the order is that of the file: 0.5, 2, 4, 5.5, 7, 9, 10.5 s at the middles.
    assert by_label["cut at 0.5"] == [0, 0, 0, 0, 1, 1, 1]
    # Depths 0 1 1 2 1 1 0: start and d_start are the first layer.
    assert by_label["layer cut at 0.2"] == [0, 1, 1, 1, 1, 1, 0]


def test_layers_go_with_their_gradients():
    layer = layer_of_group(PROBLEM)
    names = PROBLEM.graph.op_names
    rank = dict(zip(names, layer.tolist(), strict=True))
    assert {rank["start"], rank["d_start"]} == {0, 1}
    assert rank["loss"] == 6


def test_branches_are_apart():
    # One window of all is connected; without start and loss there are four parts.
    assert set(branches_apart(PROBLEM, 1).tolist()) == {0}
    free = make_graph({"a": 3, "b": 2, "c": 2}, [])
    devices = branches_apart(PlacementProblem(free, make_cluster(2), "none"), 1)
    assert devices.tolist() == [0, 1, 1]


def test_no_placement_is_measured_twice():
    plan = replace(fidelity.QUICK, budget_seconds=0.1, every=1)
    found = list(fidelity.placements(plan, PROBLEM))
    assert len({split.devices.tobytes() for split in found}) == len(found)
    assert [split.label for split in found[:2]] == ["all on 0", "all on 1"]
    some = list(fidelity.placements(replace(plan, every=5), PROBLEM))
    splits_of = [[each.label for each in few if each.family != "placer"] for few in (found, some)]
    assert splits_of[1] == [*splits_of[0][:2], *splits_of[0][2::5]]


def test_predictions_are_the_simulator_s(tmp_path):
    rows = [row_of("split", [0, 0, 1, 1, 1, 0, 0], family="cut")]
    rows[0]["runs"] = [{"samples": [3.0, 5.0]}, {"samples": [4.0, 9.0, 1.0]}]
    rows.append(row_of("failed", [0] * 7, family="cut") | {"reason": "worker 1 was killed"})
    free = Cost((0.0, 0.0), (0.0, 0.0))
    split, failed = fidelity.with_predictions(PROBLEM, rows, free)
    assert split["measured"] == 4.0
    assert split["predicted"] == simulate(PROBLEM, [0, 0, 1, 1, 1, 0, 0]).step_time
    assert (split["transfers"], split["bytes"]) == (4, 4)
    assert (failed["measured"], failed["predicted"], failed["transfers"]) == (None, 11.0, 0)
