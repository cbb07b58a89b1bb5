import json

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, load_placement, place, simulate
from placeto.placement import Placement
from tests.builders import make_cluster, make_graph

TENSORS = [("a", 4, ["b", "c"]), ("b", 2, ["d"]), ("c", 2, ["d"])]
GRAPH = make_graph({"a": 1.0, "b": 2.0, "c": 3.0, "d": 1.0}, TENSORS, colocation={"a": 7, "d": 7})
CLUSTER = make_cluster(2)


@pytest.fixture
def problem():
    return PlacementProblem(GRAPH, CLUSTER, "none")


@pytest.fixture
def saved(problem, tmp_path):
    path = tmp_path / "placement.json"
    place(problem, "etf").save(path)
    return path


def edited(path, **fields):
    document = json.loads(path.read_text())
    for key, value in fields.items():
        if value is None:
            del document[key]
        else:
            document[key] = value
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", ["p.json", "p.json.gz"])
def test_a_saved_placement_comes_back(problem, tmp_path, name):
    placement = place(problem, "random", seed=3)
    placement.save(tmp_path / name)
    again, devices = load_placement(tmp_path / name, GRAPH, CLUSTER)
    assert np.array_equal(again.op_group, problem.op_group)
    assert np.array_equal(devices, placement.devices)
    assert simulate(again, devices).step_time == placement.step_time


def test_every_op_has_a_device_by_name(problem):
    placement = place(problem, "single")
    assert placement.op_devices() == {name: "d0" for name in "abcd"}
    # a and d are one group.
    assert placement.device_names() == ["d0", "d0", "d0"]


def test_a_placement_written_by_hand_needs_op_devices_only(tmp_path):
    path = tmp_path / "hand.json"
    op_devices = {"a": "d1", "b": 0, "c": "d1", "d": "d1"}
    header = {"format": "placeto.placement", "version": 1}
    path.write_text(json.dumps(header | {"op_devices": op_devices}))
    problem, devices = load_placement(path, GRAPH, CLUSTER)
    assert devices[problem.op_group].tolist() == [1, 0, 1, 1]


def test_a_placement_fits_another_grouping_of_the_same_ops(saved):
    _, devices = load_placement(saved, GRAPH, CLUSTER)
    by_op = {name: f"d{devices[group]}" for name, group in zip("abcd", [0, 1, 2, 0], strict=True)}
    path = edited(saved, op_group=None, op_devices=by_op)
    problem, again = load_placement(path, GRAPH, CLUSTER)
    assert again[problem.op_group].tolist() == [int(by_op[name][1]) for name in "abcd"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "placeto.graph"}, "format is 'placeto.graph', expected 'placeto.placement'"),
        ({"version": 2}, "version 2 of placeto.placement is later"),
        ({"op_devices": None}, "key 'op_devices' is missing"),
        ({"op_devices": {"a": "d0"}}, "op 'b' of graph 'by hand' has no device"),
        ({"op_devices": {name: "d9" for name in "abcd"}}, "there is no device 'd9'"),
        ({"op_devices": {name: ["d0"] for name in "abcd"}}, "op_devices"),
        ({"op_devices": {name: "d0" for name in "abcde"}}, "op_devices has op 'e'"),
        (
            {"op_devices": dict(zip("abcd", ["d0", "d0", "d0", "d1"], strict=True))},
            "op_devices parts op 'a'",
        ),
        ({"op_group": [0, 1]}, r"op_group: grouping has shape \(2,\)"),
        ({"op_group": [0, 1, 2, [3]]}, "op_group"),
        ({"op_group": [0, 1, 2, 9]}, r"op_group: grouping\[3\] is 9, but 4 ops"),
        ({"op_group": [0, 1, 3, 3]}, "op_group: grouping has no op in group 2"),
        ({"op_group": [0, 1, 2, 3]}, "op_group: grouping parts 'a'"),
        ({"op_group": "auto"}, "op_group: expected a list or null"),
    ],
)
def test_a_file_that_does_not_match_is_one_clear_line(saved, fields, message):
    path = edited(saved, **fields)
    with pytest.raises(PlacetoError, match=message) as error:
        load_placement(path, GRAPH, CLUSTER)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_time_spent_is_not_compared(problem):
    def found(devices, seed=0, wall_seconds=1.0):
        return Placement(
            problem,
            np.array(devices),
            1.0,
            np.zeros(2),
            True,
            "etf",
            seed,
            wall_seconds=wall_seconds,
        )

    assert found([0, 1, 0]) == found([0, 1, 0], wall_seconds=2.0)
    assert found([0, 1, 0]) != found([0, 1, 1])
    assert found([0, 1, 0]) != found([0, 1, 0], seed=1)
