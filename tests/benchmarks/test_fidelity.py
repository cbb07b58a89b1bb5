import pytest

from benchmarks import fidelity
from benchmarks.splits import splits
from placeto import Channel, Cluster, Device
from placeto.cluster import EndCost
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


def row(label: str, family: str, measured: float | None, one: float, two: float) -> dict:
    # A second run is twice as slow, and so are both workers beside it, which take 20 and 22.
    def run(slow: float) -> dict:
        return {"samples": [slow * measured] * 3, "beside": [[slow * 20.0] * 3, [slow * 22.0] * 3]}

    return {
        "label": label, "family": family, "runs": [] if measured is None else [run(1), run(2)],
        "version 1": one, "version 2": two, "transfers": 3,
    }  # fmt: skip


def graph(*rows: dict) -> dict:
    # Simulated, a step on either worker takes 10; measured, 20 and 22, and so 21 in the mean.
    single = [
        row(fidelity.ONE, "single device", 20.0, 10.0, 10.0),
        row(fidelity.ONE_TOO, "single device", 22.0, 10.0, 10.0),
    ]
    return {"rows": [*single, *rows]}


FIRST, SECOND = "searched in version 1", "searched in version 2"
STEP = graph(
    row("a", FIRST, 26.25, 5.0, 12.0),  # 0.5 in version 1, and 1.25 for real
    row("b", SECOND, 16.8, 4.0, 8.0),  # 0.8 in version 2, as it is
    row("c", "cut", 18.9, 9.0, 11.0),  # wins by a tenth, which version 2 does not see
    row("d", "cut", 31.5, 12.0, 15.0),
    row("failed", "cut", None, 1.0, 1.0),
)


def test_figures_by_hand():
    one, two = (fidelity.figures({"step": STEP}, version) for version in (1, 2))
    assert (one["searched"], two["searched"]) == (1, 1)
    assert (one["error"], one["bias"]) == pytest.approx((0.6, -0.6))  # 0.5 over 1.25
    assert (two["error"], two["worst"]) == pytest.approx((0.0, 0.0))
    assert (one["above"], two["above"]) == (1, 0)
    # Not searched: 0.9 and 1.2 where 0.9 and 1.5 are measured; and 1.1 and 1.5.
    assert one["error_others"] == pytest.approx((0.0 + 0.2) / 2)
    assert two["error_others"] == pytest.approx((2 / 9 + 0.0) / 2)
    assert (one["wins"], one["false_wins"], two["wins"], two["false_wins"]) == (1, 1, 1, 0)
    assert (one["real_wins"], one["missed"], two["missed"]) == (1, 0, 1)
    # The best is b, of 16; version 1, which is not asked of b, chooses a.
    assert one["regret"] == pytest.approx([25 / 16 - 1])
    assert two["regret"] == pytest.approx([0.0])
    assert (one["apart"], two["apart"]) == (one["regret"], two["regret"])  # all turns are alike
    # Measured: b c a d; version 1: b a c d; version 2: b c a d.
    assert (one["spearman"], two["spearman"]) == pytest.approx((0.8, 1.0))
    assert one["most"] == pytest.approx(1.0)


def test_a_worker_that_a_search_finds_is_no_false_win():
    found = row("e", SECOND, 22.0, 10.0, 10.0)
    step = graph(found, *STEP["rows"][2:])
    step["rows"][1] |= {"version 2": 12.0}  # the other worker is slower: 10 is below the mean
    both = fidelity.figures({"step": step}, 2)
    assert (both["searched"], both["wins"], both["false_wins"]) == (2, 1, 0)


def test_regret_is_judged_by_turns_that_did_not_choose():
    even, lucky = row("even", SECOND, 10.0, 5.0, 5.0), row("lucky", "cut", 10.0, 9.0, 9.0)
    # In the mean as fast; in every other turn a half faster, in the others as much slower.
    lucky["runs"] = [
        {"samples": [5.0, 15.0, 5.0], "beside": [[20.0] * 3, [22.0] * 3]},
        {"samples": [15.0, 5.0, 5.0], "beside": [[20.0] * 3, [22.0] * 3]},
    ]
    figures = fidelity.figures({"step": graph(even, lucky)}, 2)
    assert figures["regret"] == pytest.approx([1.0])  # over 5, the median of all six
    # Turns 0, 2, 4 have 5, 5, 5 and choose it, to take 15, 15, 5 in the others; these choose even.
    assert figures["apart"] == pytest.approx([(10 / 15 - 1 + 0) / 2])


def test_a_page_and_a_picture_of_it(tmp_path):
    page = fidelity.markdown({"step": STEP})
    assert "| version 1 | 1 | 60.0% | -60.0% | 60% | 1 | 10.0% | 1 of 1 | 0 of 1 | 56.2% |" in page
    assert "| `step` | 31500 | 0.95 | 0.50 | 1.25 | 0.80 | 0.80 | 0.80 |" in page
    fidelity.draw({"step": STEP}, tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")


def test_version_1_is_version_2_without_what_transfers_cost_their_ends():
    ends = {"send": (EndCost(0, 1e-4),), "receive": (EndCost(0, 2e-4, 1e-9),)}
    devices = (Device("x", "k", 1), Device("y", "k", 1))
    there = Channel("there", ("x",), ("y",), 1e9, 1e-4, **ends)
    back = Channel("back", ("y",), ("x",), 1e9, 1e-4)
    cluster = Cluster("two", devices, (there, back))
    assert fidelity.in_version(cluster, 2) is cluster
    found = fidelity.in_version(cluster, 1).channels
    assert found[0] == Channel("there", ("x",), ("y",), 1e9, pytest.approx(3e-4))
    assert found[1] == back


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
