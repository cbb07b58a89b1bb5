import pytest

from benchmarks import fidelity
from benchmarks.splits import splits
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
