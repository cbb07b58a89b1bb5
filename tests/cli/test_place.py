import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import placeto.cli as cli
import placeto.cli.place as module
from placeto import (
    load_cluster,
    load_graph,
    load_placement,
    place,
    save_cluster,
    simulate,
)
from placeto.extraction import Extraction
from placeto.placers import PLACERS, Placer
from tests.builders import make_cluster

FORK = ("fork.json", "--cluster", "duo.yaml")
PLACE = ("place", *FORK, "--grouping", "none", "--method", "etf")


def interrupted(incumbent, rng):
    incumbent.progress("one placement so far")
    incumbent.offer([1] * incumbent.problem.num_groups)
    raise KeyboardInterrupt


@pytest.fixture
def slow(monkeypatch):
    """A placer `slow` that Ctrl-C ends when it has one placement."""
    monkeypatch.setitem(PLACERS, "slow", Placer("slow", "", interrupted, anytime=True))


def test_json_says_all_that_the_design_promises(placeto):
    result = placeto(*PLACE, "--json", "--seed", "7")
    assert result.status == 0
    row = result.document
    assert row.pop("wall_seconds") >= 0
    assert row == {
        "graph": "by hand",
        "cluster": "by hand",
        "method": "etf",
        "grouping": "none",
        "num_groups": 4,
        "order": "fifo",
        "objective": "step-time",
        "examples_per_second": None,  # its graph knows no batch
        "step_time": 13.0,  # see test_a_fork_is_split
        "microbatch_seconds": 11.0,
        "single_device_step_time": 22.0,
        "single_device_microbatch_seconds": 22.0,
        "single_device_feasible": True,
        "ratio": 13 / 22,
        "lower_bound": 13.0,
        "gap": 1.0,
        "infeasibility": None,
        "feasible": True,
        "devices": ["d0", "d1"],
        "peak_memory": [2, 3],
        "memory_limit": [100, 100],
        "found_by": "etf",
        "evaluations": 1,
        "seed": 7,
        "settings": {},
        "interrupted": False,
        "pipeline": None,
        "placement": ["d0", "d0", "d1", "d1"],
        "output": None,
        "timeline": None,
        "device_map": None,
        "pipeline_plan": None,
        "report": None,
    }


def test_text_says_how_fast_how_good_and_where(placeto):
    result = placeto(*PLACE, "-o", "p.json")
    assert result.status == 0
    assert "13 s, at most 1.000 times the optimum" in result.out
    assert "0.591 of 22 s, the best single device" in result.out
    assert "\x1b" not in result.out
    assert result.err == "placeto: the placement is in p.json\n"


def test_throughput_is_what_is_made_small_and_judged_by(placeto):
    """Of 22 s of work each device has half, a or d with b or c."""
    argv = ("place", *FORK, "--grouping", "none", "--objective", "throughput")
    row = placeto(*argv, "--method", "exact", "--json").document
    assert row["objective"] == "throughput"
    assert row["microbatch_seconds"] == 11.0 == pytest.approx(row["lower_bound"])
    assert row["gap"] == pytest.approx(1.0)
    assert row["ratio"] == 0.5
    text = placeto(*argv, "--method", "exact").out
    assert "a microbatch" in text
    table = placeto("compare", *argv[1:], "--methods", "single,stages").out
    assert "a microbatch" in table
    for option in ("--report=page.html", "--measure"):
        says = placeto(*argv, option).complaint
        assert "is about single steps; leave out --objective" in says


def test_simulate_gives_the_placement_the_same_step_time(placeto):
    placed = placeto(*PLACE, "-o", "p.json.gz", "--timeline", "t.json", "--json").document
    shown = placeto("simulate", *FORK, "--placement", "p.json.gz", "--timeline", "u.json", "--json")
    row = shown.document
    for key in ("step_time", "peak_memory", "feasible", "placement", "ratio", "lower_bound"):
        assert row[key] == placed[key]
    assert row["method"] == "given"
    assert row["transfers"] == 2
    assert row["transferred_bytes"] == 2
    assert [device["work_seconds"] for device in row["by_device"]] == [11.0, 11.0]
    assert [device["ops"] for device in row["by_device"]] == [2, 2]
    assert json.loads(Path("t.json").read_text()) == json.loads(Path("u.json").read_text())


def test_a_bundled_graph_on_a_preset_comes_back(placeto):
    argv = ("nmt", "--cluster", "k80x4")
    placed = placeto("place", *argv, "--method", "etf", "-o", "p.json", "--json").document
    row = placeto("simulate", *argv, "--placement", "p.json", "--json").document
    assert row["step_time"] == placed["step_time"]
    problem, devices = load_placement("p.json", load_graph("nmt"), load_cluster("k80x4"))
    assert simulate(problem, devices).step_time == placed["step_time"]
    assert problem.num_groups == placed["num_groups"] == len(placed["placement"])


@pytest.mark.parametrize("method", ["single", "random", "expert", "etf"])
def test_pins_by_number_and_by_op_are_obeyed(placeto, method):
    argv = ("place", *FORK, "--grouping", "none", "--method", method, "--json")
    row = placeto(*argv, "--pin", "b=d1", "--pin", "2=0", "--pin", "d=1").document
    assert row["placement"][1:] == ["d1", "d0", "d1"]


def test_what_does_not_fit_is_written_said_and_is_status_1(placeto):
    cluster = Path("duo.yaml").read_text().replace("memory: 100", "memory: 2")
    Path("tiny.yaml").write_text(cluster)
    argv = ("place", "fork.json", "--cluster", "tiny.yaml", "--method", "single")
    result = placeto(*argv, "--json", "-o", "nowhere.json")
    assert result.status == 1
    assert result.document["feasible"] is False
    assert result.document["single_device_feasible"] is False
    written, warning = result.err.splitlines()
    assert written == "placeto: the placement is in nowhere.json"
    assert warning == "placeto: warning: out of memory on d0: peak 3 of 2 bytes"
    assert Path("nowhere.json").exists()
    assert result.document["gap"] is None
    assert "OOM" in placeto(*argv).out


@pytest.mark.parametrize(
    ("bandwidth", "extra", "costs", "seconds"),
    [
        # b on d0, c and d on d1. a's output is sent [1, 10.52), b's [11, 20.52); d ends at 21.52.
        # With a tenth less bandwidth [1, 11.58) and [11.58, 22.16), so that it ends at 23.16. If
        # the first keeps d0 for 0.1 / 0.105 s, b runs from 1.95 to 11.95, and d ends at 23.53.
        (0.105, {"multicast": True}, "bandwidth", "23.16 s"),
        (0.105, {"send": [{"from": 0, "per_byte": 1e-9}]}, "bandwidth and ends", "23.16 s"),
        (0.105, {}, "bandwidth, and ends kept for a tenth of each", "23.53 s"),
        (0.125, {}, None, None),
    ],
)
def test_a_win_that_costlier_transfers_undo(placeto, bandwidth, extra, costs, seconds):
    cluster = yaml.safe_load(Path("duo.yaml").read_text())
    for channel in cluster["channels"]:
        channel |= {"bandwidth": bandwidth, "multicast": False} | extra
    Path("slow.yaml").write_text(yaml.safe_dump(cluster))
    argv = ("place", "fork.json", "--cluster", "slow.yaml", "--grouping", "none")
    result = placeto(*argv, "--method", "exact", "--json")
    assert result.document["ratio"] < 1
    warning = (
        f"placeto: warning: where transfers cost a tenth more ({costs}), a step takes {seconds}, "
        "and 22 s on d0 alone; calibrate before relying on it"
    )
    assert result.err.splitlines() == ([warning] if costs else [])


@pytest.mark.parametrize(
    ("command", "start"), [(("place", "--method"), ""), (("compare", "--methods"), "by hand: ")]
)
def test_that_nothing_can_fit_is_said_in_a_line(placeto, command, start):
    cluster = Path("duo.yaml").read_text().replace("memory: 100", "memory: 1")
    Path("tiny.yaml").write_text(cluster)
    name, option = command
    argv = (name, "fork.json", "--cluster", "tiny.yaml", "--grouping", "none", option, "single")
    first = placeto(*argv).err.splitlines()[0]
    assert first == (
        f"placeto: {start}no placement fits in memory: group 1 ('b' and what goes with it) needs "
        "at least 2 B, and 'd0', the largest device that it may be on, has 1 B"
    )


def test_a_step_that_never_ends_is_null(placeto):
    document = json.loads(Path("fork.json").read_text())
    document["op_seconds"] = {"k": [1, 10, 10, 1], "other": [1, None, 10, 1]}
    Path("fork.json").write_text(json.dumps(document))
    cluster = Path("duo.yaml").read_text()
    Path("mixed.yaml").write_text("kind: other".join(cluster.rsplit("kind: k", 1)))
    header = {"format": "placeto.placement", "version": 1}
    places = {"op_devices": {name: "d1" for name in "abcd"}}
    Path("p.json").write_text(json.dumps(header | places))
    argv = ("simulate", "fork.json", "--cluster", "mixed.yaml", "--placement", "p.json")
    result = placeto(*argv, "--json")
    assert result.status == 0
    assert result.document["step_time"] is None
    assert result.document["ratio"] is None
    assert result.document["feasible"] is False
    assert "cannot run" in placeto(*argv).out
    failed = placeto(*argv, "--timeline", "t.json")
    assert failed.status == 2
    assert "op 'b' cannot run on 'd1'" in failed.err
    assert not Path("t.json").exists()


def test_ctrl_c_leaves_the_best_placement_so_far(placeto, slow):
    argv = ("place", *FORK, "--grouping", "none", "--method", "slow", "-o", "p.json")
    result = placeto(*argv, "--json")
    assert result.status == 130
    assert result.document["interrupted"] is True
    assert result.document["step_time"] == 22.0
    lines = result.err.splitlines()
    assert lines[0] == "slow on by hand: one placement so far"
    assert lines[-1] == "placeto: interrupted; this is the best placement until then"
    row = placeto("simulate", *FORK, "--placement", "p.json", "--json").document
    assert row["placement"] == ["d1"] * 4


def broken(incumbent, rng):
    raise SystemError("of its own")


SMALL = (
    "--agent",
    "placeto-2019",
    "--updates",
    "1",
    "--episodes",
    "2",
    "--rounds",
    "1",
    "--width",
    "4",
)


@pytest.mark.parametrize(
    ("policy", "method", "expected"),
    [
        ("placeto", None, "auto"),
        ("placeto", "placeto", "placeto"),
        ("run", None, "placeto-2019"),
        ("run", "placeto-2019", "placeto-2019"),
    ],
)
def test_a_policy_is_what_the_placer_begins_with(placeto, policy, method, expected):
    trained = placeto(
        "train", "--graphs", "fork.json", *FORK[1:], "--grouping", "none", *SMALL, "-o", "run"
    )
    assert trained.status == 0
    argv = ("place", *FORK, "--grouping", "none", "--policy", policy, "--budget", "1", "--json")
    row = placeto(*argv, *(("--method", method) if method else ())).document
    assert (row["method"], row["settings"]) == (expected, {"policy": policy})
    assert row["step_time"] == 13.0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (
            ("--method", "heft", "--policy", "placeto"),
            "heft works with no policy; placers that do",
        ),
        (("--policy", "nowhere"), "nowhere: no run directory, and no bundled policy"),
        (("--policy", "placeto", "--set", "policy=none"), "--set policy=none, too"),
        (("--method", "placeto-2019", "--policy", "placeto"), "placeto: is a policy of placeto;"),
        (("--method", "auto", "--policy", "run"), "run: is a policy of placeto-2019, and not"),
        (("--policy", "run", "--cluster", "three.yaml"), "num_devices = 2, but by hand on by hand"),
    ],
)
def test_a_policy_that_does_not_go_with_the_placer_is_one_line(placeto, argv, says):
    train = ("train", "--graphs", "fork.json", *FORK[1:], "--grouping", "none", *SMALL)
    assert placeto(*train, "-o", "run").status == 0
    save_cluster(make_cluster(3, memory=100), Path("three.yaml"))
    cluster = () if "--cluster" in argv else FORK[1:]
    result = placeto("place", "fork.json", *cluster, *argv, "--budget", "1", "-o", "p.json")
    assert says in result.complaint
    assert not Path("p.json").exists()


@pytest.mark.parametrize(
    ("graph", "budget", "expected"),
    [
        # Loading counts twice: once for what is told and written at the end.
        ("fork.json", "30", 30 - 2 * 2 - 1 - 2 - 1 - module.PYTHON_SECONDS),
        ("fork.json", "12", 8),  # a search has two thirds at least
        ("zoo:fork", "30", 30 - 1 - 2 - 1 - module.PYTHON_SECONDS),  # nothing for extraction
    ],
)
def test_the_budget_begins_with_the_command(placeto, monkeypatch, graph, budget, expected):
    now, given = [0.0], []
    monkeypatch.setattr(cli, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def taking(seconds, function):
        def slow(*arguments):
            now[0] += seconds
            return function(*arguments)

        return slow

    def recording(problem, method, seconds, *arguments):
        given.append(seconds)
        return place(problem, method, seconds, *arguments)

    monkeypatch.setattr(module, "place", recording)
    fork = Extraction(load_graph("fork.json"), None)
    monkeypatch.setattr(module, "extracted", taking(500, lambda _: fork))
    for name, seconds in (("load_graph", 2), ("baseline", 1)):
        monkeypatch.setattr(module, name, taking(seconds, getattr(module, name)))
    monkeypatch.setattr(module.Place, "problem", taking(2, module.Place.problem))
    monkeypatch.setattr(module, "_compile", taking(1, lambda *_: False))
    argv = ("place", graph, *PLACE[2:], "--budget", budget)
    assert placeto(*argv).status == 0
    assert given == [pytest.approx(expected)]
    # All of it is the search's where something had to be compiled.
    monkeypatch.setattr(module, "_compile", lambda *_: True)
    assert placeto(*argv).status == 0
    assert given[1] == float(budget)
