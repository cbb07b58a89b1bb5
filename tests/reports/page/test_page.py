import json
import re
from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, place
from placeto.reports.page.figures import search_figure, time_figure
from placeto.reports.page.render import render, sensitivity_sentence, verdict
from tests.builders import make_cluster, make_graph, make_problem
from tests.reports.page.choosing import placement_of, report_of

NASTY = "<script>alert('op')</script>"
# Apart, b and c take 13 s of ops and two transfers of 1 s; on one device 22 s.
FORK = make_graph(
    {"a": 1.0, "b": 10.0, "c": 10.0, "d": 1.0},
    [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
)


def chosen(devices, graph=FORK, **known):
    cluster = make_cluster(2, memory=100)
    small = replace(cluster.devices[1], memory_bytes=75)
    problem = make_problem(graph, replace(cluster, devices=(cluster.devices[0], small)))
    return placement_of(problem, devices, **known)


def tiles(page):
    found = re.findall(
        r'<dt>(.*?)</dt><dd class="value">(.*?)</dd><dd class="note">(.*?)</dd>', page
    )
    return {name: (value, note) for name, value, note in found}


def rows(page, section):
    """Texts of the cells of the first table of a section, row by row."""
    table = page.split(f'id="{section}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S) for row in table.split("<tr")[1:]]
    return [[re.sub(r"<.*?>", "", cell) for cell in row] for row in cells]


def test_key_figures_placers_and_sensitivity_of_a_placement():
    report = report_of(chosen([0, 0, 1, 0], method="annealing", wall_seconds=2.0, evaluations=9))
    page = render(report)
    assert tiles(page) == {
        "Step time": ("14 s", "simulated"),
        "Over one device": ("1.57×", "22 s on d0"),
        "Gap to the bound": ("≤ 7.7%", "no placement that fits is below 13 s"),
        "Memory": ("3%", "2 B of 75 B on d1, the fullest"),
        "Found by": ("given", "in 2 s, 9 placements simulated"),
    }
    found = {row[0]: row for row in rows(page, "placers")}
    names = list(found)
    assert names.index("etf") < names.index("annealing by given chosen") < names.index("single")
    assert found["single"][1:7] == ["22 s", "", "1.000", "69.2%", "1", "3 B of 100 B"]
    assert found["etf"][7] == "yes"
    believed = rows(page, "sensitivity")[0]
    assert believed == ["as believed", "14 s", "expert", "13 s", "expert", "7.7%", "7.7%"]
    assert "expert is faster, by 7.7%" in sensitivity_sentence(report)
    best = report_of(chosen([0, 0, 1, 1], method="annealing"))
    assert verdict(best)[1] == "It is optimal: no placement that fits is faster."
    assert sensitivity_sentence(best).startswith("The choice stands")


def test_what_does_not_fit_is_said_first():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 60, "b": 60})
    report = report_of(chosen([0, 0], graph, method="annealing"))
    assert verdict(report) == [
        "This placement does not fit in memory.",
        "What expert finds does, and takes 1 s.",
    ]
    page = render(report)
    assert tiles(page)["Out of memory"] == ("120%", "120 B of 100 B on d0, the fullest")
    assert tiles(page)["Gap to the bound"][0] == "–"
    fits = {row[0]: row[7] for row in rows(page, "placers")}
    assert (fits["annealing by given chosen"], fits["etf"]) == ("no", "yes")
    assert rows(page, "sensitivity")[0][1:5] == ["does not fit", "expert", "1 s", "expert"]
    assert "too much" in page


def test_where_nothing_fits_no_choice_stands():
    graph = make_graph(dict.fromkeys("abc", 1.0), param_bytes=dict.fromkeys("abc", 6))
    problem = make_problem(graph, make_cluster(2, memory=10))
    report = report_of(placement_of(problem, [0, 0, 1], method="exact", lower_bound=np.inf))
    assert verdict(report)[1] == "no placement fits in memory: exact has ruled out every one"
    page = render(report)
    assert tiles(page)["Gap to the bound"] == ("–", "none fits")
    none = ["does not fit", "none fits", "-", "none fits", "–", "–"]
    assert rows(page, "sensitivity")[0][1:] == none


def test_names_that_users_give_are_never_markup():
    graph = make_graph({NASTY: 1.0, "b": 1.0}, [(NASTY, 1, ["b"])])
    graph = replace(graph, name=NASTY, op_types=[NASTY, NASTY], meta={"source": NASTY})
    cluster = make_cluster(2)
    devices = tuple(replace(each, name=f"{each.name}{NASTY}") for each in cluster.devices)
    names = tuple(device.name for device in devices)
    channels = tuple(
        replace(channel, name=f"{NASTY}{number}", sources=(source,), destinations=(target,))
        for number, (channel, source, target) in enumerate(
            zip(cluster.channels, names, names[::-1], strict=True)
        )
    )
    cluster = replace(cluster, name=NASTY, source=NASTY, devices=devices, channels=channels)
    placement = placement_of(PlacementProblem(graph, cluster, "none"), [0, 1], method=NASTY)
    page = render(report_of(placement, date=NASTY))
    assert page.count("<script>") == 1  # the page's own
    assert "alert('op')" not in page
    assert "&lt;script&gt;" in page
    hover = json.loads(re.search(r'id="hover">(.*?)</script>', page)[1])
    assert NASTY in hover["device"][0][0][2]


def test_the_page_needs_nothing_else():
    page = render(report_of(chosen([0, 0, 1, 1])))
    assert "#pipeline" not in page  # of one microbatch
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", page)
    assert "http" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_a_search_is_drawn_along_its_time():
    trace = ((1, 0.001, 22.0), (5, 0.1, 14.0), (9, 1.0, 13.0))
    report = report_of(
        chosen([0, 0, 1, 1], trace=trace, wall_seconds=10.0, learning=((0.1, 20.0), (10.0, 13.0)))
    )
    figure = search_figure(report)
    # Three of four decades in steps: from 1 ms, after two, after three, to the end.
    assert re.fullmatch(r"M0 ([\d.]+)H500V([\d.]+)H750V([\d.]+)H1000", figure["best"])
    assert re.fullmatch(r"M500 [\d.]+L1000 [\d.]+", figure["learned"])
    first, second, third = map(float, re.findall(r"[M0V] ?([\d.]+)(?=H)", figure["best"]))
    assert first < second < third
    assert (third - second) / (third - first) == pytest.approx(1 / 9, abs=0.01)
    assert [line["name"] for line in figure["references"]] == [
        "best single device, 22 s",
        "bound, 13 s",
    ]
    assert figure["improvements"] == 2
    at_once = tuple((number, 0.0, step) for number, _, step in trace)
    assert search_figure(report_of(chosen([0, 0, 1, 1], trace=at_once)))["seconds"] == "0 s"
    assert search_figure(report_of(chosen([0, 0, 1, 1], trace=trace[:1]))) is None


def test_shares_of_the_time_follow_each_other():
    figure = time_figure(report_of(chosen([0, 0, 1, 0])))
    for row in figure["rows"]:
        ends = [part["at"] + part["share"] for part in row["parts"]]
        begins = [part["at"] for part in row["parts"]]
        assert begins == pytest.approx([0, *ends[:-1]])
        assert ends[-1] == pytest.approx(1)
    assert figure["kinds"] == ["compute", "transfer", "wait", "idle"]  # nothing is launched


def test_what_was_measured_is_on_the_page():
    measured = {
        "method": "auto", "kept": True, "simulated_step_time": 13.0, "step_time": 15.0,
        "interval": [14.5, 15.5], "feasible": True, "reason": "", "predicted_step_time": 14.8,
        "runs": 3,
    }  # fmt: skip
    page = render(report_of(chosen([0, 0, 1, 1]), measured=(measured,)))
    assert tiles(page)["Step time"][1] == "simulated; 15 s measured"
    assert "14.5 s to 15.5 s" in page
    assert "14.8 s" in page


def test_a_step_that_never_ends_has_no_report(tmp_path):
    graph = replace(FORK, op_seconds={"k": np.array([1.0, np.inf, 1.0, 1.0]), "l": np.ones(4)})
    cluster = make_cluster(2)
    devices = (cluster.devices[0], replace(cluster.devices[1], kind="l"))
    problem = make_problem(graph, replace(cluster, devices=devices))
    with pytest.raises(PlacetoError, match="never ends"):
        report_of(placement_of(problem, [0, 0, 0, 0]))
    with pytest.raises(PlacetoError, match="takes no time"):
        report_of(chosen([0], make_graph({"a": 0.0})))


def test_twenty_thousand_ops_are_a_page_below_three_megabytes():
    rng = np.random.default_rng(0)
    count = 20_000
    names = [f"a/rather/long/name/of/an/op/as/frameworks/make/them/{n}" for n in range(count)]
    back = rng.integers(1, 50, count)
    tensors: dict[int, list[str]] = {}
    for n in range(50, count):
        tensors.setdefault(int(n - back[n]), []).append(names[n])
    graph = make_graph(
        dict(zip(names, rng.uniform(1e-6, 1e-3, count).tolist(), strict=True)),
        [(names[n], 10_000, readers) for n, readers in tensors.items()],
    )
    # Of microbatches that take turns op by op.
    parts = {"microbatch": rng.integers(-1, 8, count), "phase": rng.integers(0, 3, count)}
    graph = replace(graph, **parts)
    problem = PlacementProblem(graph, make_cluster(4, bandwidth=1e10, launch_overhead=1e-6), 300)
    page = render(report_of(place(problem, "random")))
    assert len(page.encode()) < 3e6
