import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import placeto
from placeto import Channel, PlacementProblem, PlacetoError, simulate
from placeto.cluster import EndCost, Link
from placeto.simulation import save_timeline, timeline
from placeto.support.files import read_json
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import clusters_of_links, placed

LINKED = {"made": clusters_of_links, "ranked": True}


def tracks(document: dict[str, Any], phase: str) -> dict[tuple[int, int], list[dict[str, Any]]]:
    found = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == phase:
            found[event["pid"], event["tid"]].append(event)
    return found


def assert_no_overlap(document: dict[str, Any]) -> None:
    """Slices come one after the other; in those of ops there may be some of transfers."""
    # Readers go from microseconds to whole nanoseconds; some round, some cut.
    for to_integer in (round, int):
        for slices in tracks(document, "X").values():
            end = {True: 0, False: 0}  # of transfers, and of ops
            for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
                begin = to_integer(event["ts"] * 1000)
                carried = event["cat"] == "transfer"
                assert begin >= end[carried]
                end[carried] = begin + to_integer(event["dur"] * 1000)
                assert end[carried] >= begin
                if not carried:
                    assert begin >= end[True]
                elif begin < end[False]:
                    assert end[True] <= end[False]


@given(st.sampled_from([{}, LINKED]).flatmap(lambda made: placed(max_ops=30, **made)))
def test_slices_are_the_schedule(example: tuple[PlacementProblem, list[int]]) -> None:
    problem, devices = example
    schedule = simulate(problem, devices)
    assume(np.isfinite(schedule.step_time))
    document = json.loads(json.dumps(timeline(problem, schedule), allow_nan=False))
    assert_no_overlap(document)
    ops = [e for e in document["traceEvents"] if e["ph"] in "Xi" and e["cat"] != "transfer"]
    assert sorted(event["args"]["op"] for event in ops) == list(range(problem.graph.num_ops))
    for event in ops:
        op = event["args"]["op"]
        assert event["ph"] == ("X" if schedule.finish[op] > schedule.start[op] else "i")
        assert event["name"] == problem.graph.op_names[op]
        assert event["tid"] == devices[event["args"]["group"]]
        assert event["ts"] == pytest.approx(schedule.start[op] * 1e6, abs=1e-3)
        if event["ph"] == "X":
            duration = (schedule.finish[op] - schedule.start[op]) * 1e6
            assert event["dur"] == pytest.approx(duration, abs=2e-3)
    transfers = [e for e in document["traceEvents"] if e.get("cat") == "transfer"]
    assert len(transfers) == len(schedule.transfers.parts)
    peaks = defaultdict(int)
    for event in document["traceEvents"]:
        if event["ph"] == "C":
            peaks[event["name"]] = max(peaks[event["name"]], event["args"]["bytes"])
    names = [f"memory {device.name}" for device in problem.cluster.devices]
    assert [peaks[name] for name in names] == schedule.peak_memory.tolist()


def test_inception_v3_never_overlaps() -> None:
    graph, cluster = placeto.load_graph("inception_v3"), placeto.load_cluster("p2.8xlarge")
    problem = PlacementProblem(graph, cluster, "none")
    devices = np.random.default_rng(0).integers(0, 8, problem.num_groups)
    assert_no_overlap(timeline(problem, simulate(problem, devices)))


def test_document_by_hand(tmp_path: Path) -> None:
    # a [0 s, 2 s) on d0, then 10 bytes to d1 at 1 byte/s: [2, 12), with a latency of 1 s; b of
    # zero duration at 13 s.
    graph = make_graph({"a": 2, "b": 0}, [("a", 10, ["b"])], temp_bytes={"a": 5})
    problem = make_problem(graph, make_cluster(2, latency=1))
    save_timeline(problem, simulate(problem, [0, 1]), tmp_path / "t.json.gz")
    document = read_json(tmp_path / "t.json.gz")
    (a,) = tracks(document, "X")[1, 0]
    assert (a["name"], a["cat"], a["ts"], a["dur"]) == ("a", "Op", 0, 2e6)
    assert a["args"]["group"] == 0
    assert a["args"]["output_bytes"] == 10
    assert a["args"]["temp_bytes"] == 5
    (sent,) = tracks(document, "X")[2, 0]
    assert (sent["name"], sent["ts"], sent["dur"]) == ("a", 2e6, 10e6)
    assert sent["args"] == {
        "tensor": 0, "producer": "a", "bytes": 10, "destinations": ["d1"],
        "request": 2e6, "arrival": 13e6,
    }  # fmt: skip
    (b,) = tracks(document, "i")[1, 1]
    assert (b["name"], b["ts"], b["s"]) == ("b", 13e6, "t")
    memory = [(e["name"], e["ts"], e["args"]["bytes"])
              for e in document["traceEvents"] if e["ph"] == "C"]  # fmt: skip
    assert memory == [
        ("memory d0", 0, 15), ("memory d0", 2e6, 10), ("memory d0", 13e6, 0),
        ("memory d1", 0, 0), ("memory d1", 2e6, 10), ("memory d1", 13e6, 0),
    ]  # fmt: skip
    named = {
        (e["pid"], e.get("tid")): e["args"]["name"]
        for e in document["traceEvents"]
        if e["ph"] == "M" and e["name"].endswith("_name")
    }
    assert named == {
        (1, None): "devices", (1, 0): "d0", (1, 1): "d1",
        (2, None): "channels", (2, 0): "c0", (2, 1): "c1",
    }  # fmt: skip


def test_parts_of_a_transfer_by_hand() -> None:
    # a [0, 2) on d0 sends 10 bytes: 1 s on d0 [2, 3); over `out`, 5 bytes/s and 1 s away, [2, 4);
    # over `in`, 2 bytes/s, [3, 8); d1 is kept for 3 s from 3 on, [3, 6), and has it at 8: b [8, 9).
    links = (Link("out", 5.0, 1.0), Link("in", 2.0))
    there = Channel(
        "there", ("d0",), ("d1",), path=("out", "in"),
        send=(EndCost(0, 1.0),), receive=(EndCost(0, 0.0, 0.3),),
    )  # fmt: skip
    back = Channel("back", ("d1",), ("d0",), 1.0)
    cluster = replace(make_cluster(2), channels=(there, back), links=links)
    graph = make_graph({"a": 2, "b": 1}, [("a", 10, ["b"])])
    problem = make_problem(graph, cluster)
    schedule = simulate(problem, [0, 1])
    assert schedule.start.tolist() == [0, 8]
    document = timeline(problem, schedule)
    assert {
        (*track, event["name"], event["ts"] / 1e6, event["dur"] / 1e6)
        for track, slices in tracks(document, "X").items()
        for event in slices
    } == {
        (1, 0, "a", 0, 2), (1, 0, "send a", 2, 1), (3, 0, "a", 2, 2), (3, 1, "a", 3, 5),
        (1, 1, "receive a", 3, 3), (1, 1, "b", 8, 1),
    }  # fmt: skip
    named = [e for e in document["traceEvents"] if e["ph"] == "M" and e["pid"] == 3]
    assert [e["args"]["name"] for e in named if e["name"].endswith("_name")] == [
        "links", "out", "in",
    ]  # fmt: skip


def test_what_an_op_waits_for_lies_in_its_slice() -> None:
    # a [0, 1) on d0 sends 2 bytes, [1, 3), to c on d1, which receives them in 3 s, [1, 4), while it
    # runs b, of 2 s: [0, 5).
    there = Channel("there", ("d0",), ("d1",), 1.0, receive=(EndCost(0, 3.0),))
    cluster = replace(make_cluster(2), channels=(there, Channel("back", ("d1",), ("d0",), 1.0)))
    graph = make_graph({"a": 1, "b": 2, "c": 1}, [("a", 2, ["c"])])
    problem = make_problem(graph, cluster)
    document = timeline(problem, simulate(problem, [0, 1, 1]))
    assert_no_overlap(document)
    assert [
        (event["name"], event["ts"] / 1e6, event["dur"] / 1e6)
        for event in tracks(document, "X")[1, 1]
    ] == [("b", 0, 5), ("c", 5, 1), ("receive a", 1, 3)]


def test_step_that_never_ends() -> None:
    problem = make_problem(make_graph({"a": 1, "b": 1}), make_cluster(1))
    schedule = simulate(problem, [0, 0])
    schedule.finish[1] = np.inf
    object.__setattr__(schedule, "step_time", np.inf)
    with pytest.raises(PlacetoError, match="op 'b' cannot run on 'd0'"):
        timeline(problem, schedule)
