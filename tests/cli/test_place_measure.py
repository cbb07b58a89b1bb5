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
from tests.measurement.conftest import fitted, saved  # noqa: F401 (a fixture)
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


def takes(*ends):
    """A rule: a placement takes so long by how many groups the second device has."""

    def rule(devices):
        end = ends[int(devices.sum())]
        if isinstance(end, BaseException):
            raise end
        return Measurement(reason=end) if isinstance(end, str) else Measurement((end, end * 1.5))

    return rule


def names(devices):
    return [f"worker{device}" for device in devices]


def test_the_fastest_measured_is_kept(placeto, problem, pretend):  # noqa: F811
    runs = pretend(takes(8.0, 6.0, 2.0, 3.0, 5.0))
    result = placeto(*ARGV, "--measure", "--json", "-o", "p.json")
    assert result.status == 0
    assert runs[0][0] == [0] * GROUPS
    assert len(runs) <= 20
    row = result.document
    assert row["placement"] == names(OFFERED[1])
    assert row["step_time"] == simulate(problem, OFFERED[1]).step_time
    assert row["peak_memory"] == simulate(problem, OFFERED[1]).peak_memory.tolist()
    assert row["measured_step_time"] == 2.5
    assert row["measured_interval"] == [2.0, 3.0]
    assert row["stopped"] == "no run is expected to gain more than the noise"
    single, *found = row["measured"]
    assert (single["method"], single["ratio"], single["kept"]) == ("single", 1.0, False)
    assert single["samples"][:2] == [8.0, 12.0]
    assert sum(each["runs"] for each in row["measured"]) == len(runs)
    (kept,) = (each for each in found if each["kept"])
    assert kept["method"] == "steps"
    assert kept["simulated_step_time"] == row["step_time"]
    assert kept["predicted_step_time"] == row["predicted_step_time"]
    assert kept["ratio"] == 0.25
    assert kept["runs"] >= 2
    assert all(each["given_up"] for each in row["measured"] if not each["kept"])
    written = json.loads(Path("p.json").read_text())
    assert written["placement"] == names(OFFERED[1])


def test_one_device_can_be_the_answer(placeto, problem, pretend):  # noqa: F811
    pretend(takes(2.0, 4.0, 4.0, 4.0, 4.0))
    row = placeto(*ARGV, "--measure", "6", "--json").document
    assert row["placement"] == ["worker0"] * GROUPS
    assert row["measured_step_time"] == 2.5
    assert row["ratio"] == 1.0
    assert (row["method"], row["found_by"]) == ("steps", "single")


def test_what_was_measured_needs_no_warning(placeto, problem, pretend, monkeypatch):  # noqa: F811
    monkeypatch.setattr("placeto.cli.warnings.loses_if_a_tenth_off", lambda *_: 9.0)
    assert "where transfers cost a tenth more" in placeto(*ARGV).err
    pretend(takes(4.0, 2.0, 3.0, 5.0, 5.0))
    assert "where transfers cost a tenth more" not in placeto(*ARGV, "--measure").err


def test_where_none_can_be_run_the_search_is_not_lost(placeto, problem, pretend):  # noqa: F811
    pretend(takes(*["no memory"] * 5))
    result = placeto(*ARGV, "--measure", "--json", "-o", "p.json")
    assert result.status == 1
    assert result.document["placement"] == names(fastest_first(problem)[0])
    assert result.document["measured_step_time"] is None
    assert result.document["measured"][0]["reason"] == "no memory"
    assert "none of the candidates can be run: no memory\n" in result.err
    written = json.loads(Path("p.json").read_text())
    assert written["placement"] == result.document["placement"]


def test_ctrl_c_keeps_the_fastest_until_then(placeto, problem, pretend):  # noqa: F811
    ends = iter([4.0, 2.0, KeyboardInterrupt()])
    runs = pretend(lambda devices: takes(next(ends))(0 * devices))
    result = placeto(*ARGV, "--measure", "--json")
    assert result.status == 130
    assert result.document["interrupted"] is True
    assert result.document["placement"] == names(runs[1][0])
    assert [each["runs"] for each in result.document["measured"]] == [1, 1]
    assert result.document["stopped"] == "interrupted"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--measure", "3"), "--measure 3: expected one number of runs, from 4"),
        (("--measure", "2", "3"), "--measure 2 3: expected one number of runs, from 4"),
        (("--measure", "x"), "--measure"),
        (("--measure", "--measure-seconds", "0"), "--measure-seconds 0: expected a number above 0"),
        (("--measure", "--cluster", "bare.yaml"), "tensorflow is missing, so it cannot be run"),
    ],
)
def test_what_cannot_be_measured_is_said_before_the_search(placeto, problem, more, message):
    result = placeto(*ARGV, "-o", "p.json", *more)
    assert result.status == 2
    assert result.out == ""
    assert message in result.err.strip().splitlines()[-1]


def test_a_report_has_what_was_measured(placeto, problem, pretend):  # noqa: F811
    pretend(takes(4.0, 2.0, "gone", "gone", "gone"))
    result = placeto(*ARGV, "--measure", "--report", "r.html")
    assert result.status == 0
    page = Path("r.html").read_text()
    rows = page.split("Run on the real devices")[1].split("</table>")[0].split("<tr")[2:]
    (kept,) = (row for row in rows if "kept" in row)
    assert "2.5 s" in kept
    assert "2 s to 3 s" in kept
    assert any("gone" in row for row in rows)
    assert "simulated; 2.5 s measured" in page
    assert "steps --budget 30 --seed 0 --measure</code>" in page


def test_on_real_workers(placeto, folder, saved):  # noqa: F811
    save(fitted(load_cluster("local-2")), folder / "pair.yaml")
    step = saved("two_layers")
    argv = ("place", str(step.path), "--cluster", "pair.yaml", "--grouping", "4")
    result = placeto(*argv, "--method", "annealing", "--budget", "1", "--measure", "5", "--json")
    assert result.status == 0
    row = result.document
    assert sum(each["runs"] for each in row["measured"]) <= 5
    (kept,) = (each for each in row["measured"] if each["kept"])
    assert kept["ratio"] == min(each["ratio"] for each in row["measured"] if each["feasible"])
    assert row["measured_interval"][0] <= row["measured_step_time"] <= row["measured_interval"][1]
    # A step of 0.6 ms is mostly what starting it takes, of which the costs know nothing.
    predicted, simulated, ran = (
        row[key] for key in ("predicted_step_time", "step_time", "measured_step_time")
    )
    assert abs(np.log(predicted / ran)) < abs(np.log(simulated / ran))
