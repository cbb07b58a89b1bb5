"""`placeto place --measure`, on devices that are pretended."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, load_graph, simulate
from placeto import save_cluster as save
from placeto.measurement import Measurement
from placeto.placers import PLACERS, Placer
from tests.measurement.conftest import fitted
from tests.measurement.pretend import pretend  # noqa: F401 (a fixture)

GROUPS = 6
# The second device takes work over, group by group: each is the fastest until then.
OFFERED = [[int(group < count) for group in range(GROUPS)] for count in range(1, 5)]


@pytest.fixture
def problem(folder, monkeypatch):
    """On `pair.yaml`; `bare.yaml` has no TensorFlow names. `steps` offers what is above."""
    cluster = fitted(load_cluster("local-2"))
    save(cluster, folder / "pair.yaml")
    alone = load_cluster("local-cpu")
    save(
        replace(alone, devices=(replace(alone.devices[0], tensorflow=None),)), folder / "bare.yaml"
    )
    found = PlacementProblem(load_graph("rnnlm"), cluster, GROUPS)

    def steps(incumbent, rng):
        times = [simulate(incumbent.problem, each).step_time for each in OFFERED]
        for index in np.argsort(times)[::-1]:
            incumbent.offer(OFFERED[index])

    monkeypatch.setitem(PLACERS, "steps", Placer("steps", "", steps))
    return found


ARGV = ("place", "rnnlm", "--cluster", "pair.yaml", "--grouping", str(GROUPS), "--method", "steps")


def fastest_first(problem):
    return sorted(OFFERED, key=lambda each: simulate(problem, each).step_time)


def takes(*ends, again=()):
    """A rule: the placements take so long, in the order of their first runs; `again` later."""
    first, later, seen = list(ends), list(again), {}

    def rule(devices):
        key = devices.tobytes()
        known = key in seen
        if not known:
            seen[key] = first.pop(0)
        end = later.pop(0) if known and later else seen[key]
        if isinstance(end, BaseException):
            raise end
        return Measurement(reason=end) if isinstance(end, str) else Measurement((end, end + 1))

    return rule


def names(devices):
    return [f"worker{device}" for device in devices]


def test_the_fastest_measured_is_kept(placeto, problem, pretend):  # noqa: F811
    runs = pretend(takes(4.0, 2.0, 3.0, 5.0))
    result = placeto(*ARGV, "--measure", "--json", "-o", "p.json")
    assert result.status == 0
    expected = fastest_first(problem)
    there = [*expected[:3], [0] * GROUPS]
    assert [devices for devices, _ in runs] == there + there[::-1]
    row = result.document
    assert row["placement"] == names(expected[1])
    assert row["step_time"] == simulate(problem, expected[1]).step_time
    assert row["peak_memory"] == simulate(problem, expected[1]).peak_memory.tolist()
    assert row["measured_step_time"] == 2.5
    assert [each["method"] for each in row["measured"]] == ["steps"] * 3 + ["single"]
    assert [each["kept"] for each in row["measured"]] == [False, True, False, False]
    assert row["measured"][0]["simulated_step_time"] == simulate(problem, expected[0]).step_time
    assert row["measured"][1]["interval"] == [2.0, 3.0]
    assert row["measured"][3]["samples"] == [5.0, 6.0, 5.0, 6.0]
    saved = json.loads(Path("p.json").read_text())
    assert saved["placement"] == names(expected[1])


def test_one_device_can_be_the_answer(placeto, problem, pretend):  # noqa: F811
    runs = pretend(takes(4.0, 2.0))
    row = placeto(*ARGV, "--measure", "1", "--json").document
    assert len(runs) == 4
    assert row["placement"] == ["worker0"] * GROUPS
    assert row["measured_step_time"] == 2.5
    assert row["ratio"] == 1.0
    assert (row["method"], row["found_by"]) == ("steps", "single")


def test_what_was_measured_needs_no_warning(placeto, problem, pretend, monkeypatch):  # noqa: F811
    monkeypatch.setattr("placeto.cli.place.loses_if_a_tenth_off", lambda *_: 9.0)
    assert "where transfers cost a tenth more" in placeto(*ARGV).err
    pretend(takes(4.0, 2.0, 3.0, 5.0))
    assert "where transfers cost a tenth more" not in placeto(*ARGV, "--measure").err


def test_what_changes_between_the_runs_is_pooled_and_what_fails_once_is_out(
    placeto,
    problem,
    pretend,  # noqa: F811
):
    pretend(takes(4.0, 3.0, 1.0, 5.0, again=(5.0, "gone", 6.0, 1.0)))
    result = placeto(*ARGV, "--measure", "--json")
    first, second, third, single = result.document["measured"]
    assert first["samples"] == [4.0, 5.0, 1.0, 2.0]
    assert second["samples"] == [3.0, 4.0, 6.0, 7.0]
    assert (third["reason"], third["step_time"], third["samples"]) == ("gone", None, [])
    assert single["step_time"] == 5.5
    assert first["kept"]
    assert result.document["measured_step_time"] == 3.0


def test_where_none_can_be_run_the_search_is_not_lost(placeto, problem, pretend):  # noqa: F811
    pretend(takes("no memory", "none here either"))
    result = placeto(*ARGV, "--measure", "1", "--json", "-o", "p.json")
    assert result.status == 1
    assert result.document["placement"] == names(fastest_first(problem)[0])
    assert result.document["measured_step_time"] is None
    assert result.document["measured"][0]["reason"] == "no memory"
    assert "none of the candidates can be run: no memory\n" in result.err
    saved = json.loads(Path("p.json").read_text())
    assert saved["placement"] == result.document["placement"]


def test_ctrl_c_keeps_the_fastest_until_then(placeto, problem, pretend):  # noqa: F811
    pretend(takes(4.0, 2.0, KeyboardInterrupt()))
    result = placeto(*ARGV, "--measure", "--json")
    assert result.status == 130
    assert result.document["interrupted"] is True
    assert result.document["placement"] == names(fastest_first(problem)[1])
    assert len(result.document["measured"]) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--measure", "0"), "--measure 0: expected one number from 1 to 8"),
        (("--measure", "9"), "--measure 9: expected one number from 1 to 8"),
        (("--measure", "2", "3"), "--measure 2 3: expected one number from 1 to 8"),
        (("--measure", "x"), "--measure"),
        (("--measure", "--cluster", "bare.yaml"), "tensorflow is missing, so it cannot be run"),
    ],
)
def test_what_cannot_be_measured_is_said_before_the_search(placeto, problem, more, message):
    result = placeto(*ARGV, "-o", "p.json", *more)
    assert result.status == 2
    assert result.out == ""
    assert message in result.err.strip().splitlines()[-1]


def test_a_report_has_what_was_measured(placeto, problem, pretend):  # noqa: F811
    pretend(takes(4.0, 2.0, "gone", 5.0))
    result = placeto(*ARGV, "--measure", "--report", "r.html")
    assert result.status == 0
    page = Path("r.html").read_text()
    rows = page.split("Run on the real devices")[1].split("</table>")[0].split("<tr")[2:]
    assert ["kept" in row for row in rows] == [False, True, False, False]
    assert "2.5 s" in rows[1]
    assert "2 s to 3 s" in rows[1]
    assert "gone" in rows[2]
    assert "simulated; 2.5 s measured" in page
    assert "steps --budget 30 --seed 0 --measure</code>" in page
