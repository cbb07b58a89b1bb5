import json
import re
from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, place
from placeto.reports.page import save_report
from placeto.reports.page.figures import search_figure, time_figure, timeline_figure
from placeto.reports.page.render import render
from placeto.reports.page.words import (
    outcome_rows,
    placers,
    run_pairs,
    sensitivity_sentence,
    shortened,
    tiles,
    verdict,
)
from tests.builders import make_cluster, make_graph, make_problem
from tests.reports.page.choosing import placement_of, report_of

NASTY = "<script>alert('op')</script>"
# Apart, b and c take 13 s of ops and two transfers of 1 s; on one device 22 s.
FORK = make_graph(
    {"a": 1.0, "b": 10.0, "c": 10.0, "d": 1.0},
    [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
)


def chosen(devices, graph=FORK, **known):
    problem = make_problem(graph, make_cluster(2, memory=100))
    return placement_of(problem, devices, **known)


def values(report):
    return {tile["name"]: (tile["value"], tile["note"]) for tile in tiles(report)}


def test_the_verdict_says_how_fast_and_how_far_from_the_bound():
    report = report_of(chosen([0, 0, 1, 0], method="annealing", wall_seconds=2.0, evaluations=9))
    assert verdict(report)[0] == (
        "A step takes 14 s on 2 of 2 devices, 1.57 times as fast as on the best single device."
    )
    assert "expert found a faster one, 13 s" in verdict(report)[1]
    assert "none that fits is below 13 s" in verdict(report)[1]
    assert values(report) == {
        "Step time": ("14 s", "simulated"),
        "Over one device": ("1.57×", "22 s on d0"),
        "Gap to the bound": ("≤ 7.7%", "no placement that fits is below 13 s"),
        "Memory": ("2%", "2 B of 100 B on d0, the fullest"),
        "Found by": ("given", "in 2 s, 9 placements simulated"),
    }
    best = report_of(chosen([0, 0, 1, 1], method="annealing"))
    assert verdict(best)[1] == "It is optimal: no placement that fits is faster."
    # The bound is added up in another order than the step.
    vars(best.base)["lower_bound"] = np.nextafter(13.0, 14.0)
    assert values(best)["Gap to the bound"][0] == "≤ 0.0%"


def test_one_device_is_enough_where_nothing_is_faster():
    # A chain whose tensors take longer than its ops.
    chain = make_graph({"a": 1.0, "b": 1.0}, [("a", 9, ["b"])])
    alone = report_of(chosen([1, 1], chain, method="auto", found_by="single"))
    assert verdict(alone)[0] == "One device is enough: d1 takes 2 s a step."
    # But not where another placer's placement is faster, or nothing else was tried.
    assert "enough" not in " ".join(verdict(report_of(chosen([0] * 4, method="annealing"))))
    assert "enough" not in " ".join(verdict(report_of(chosen([1, 1], chain, method="single"))))


def test_what_does_not_fit_is_said_first():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 60, "b": 60})
    report = report_of(chosen([0, 0], graph, method="annealing"))
    assert verdict(report)[0] == "This placement does not fit in memory."
    assert values(report)["Out of memory"] == ("120%", "120 B of 100 B on d0, the fullest")
    assert values(report)["Gap to the bound"][0] == "–"
    rows = {row["name"]: row for row in placers(report)["rows"]}
    assert rows["annealing"]["fits"] == "no"
    assert rows["etf"]["fits"] == "yes"
    assert "too much" in render(report)


def test_what_other_placers_fit_in_memory_is_named_where_the_choice_does_not_fit():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 60, "b": 60})
    report = report_of(chosen([0, 0], graph, method="annealing"))
    assert verdict(report)[1] == "What expert finds does, and takes 1 s."
    assert "does not fit in memory, and what expert finds does" in sensitivity_sentence(report)


def test_where_nothing_fits_no_choice_stands():
    # Beside its parameters, a has its output of a byte, and b a copy of it.
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 1, ["b"])], param_bytes={"a": 100, "b": 100})
    placement = chosen([0, 1], graph, method="annealing", evaluations=1234, wall_seconds=2.0)
    report = report_of(placement)
    assert verdict(report)[1].startswith("no placement fits in memory")
    assert "neither this placement nor any other" in sensitivity_sentence(report)
    for row in outcome_rows(report):
        assert (row["step_time"], row["winner"], row["margin"]) == (
            "does not fit",
            "none fits",
            "–",
        )
    assert "fits in memory was found: 1,234 were simulated in 2 s" in render(report)
    learned = replace(placement, learning=((0.5, 4.0), (1.0, 3.0)))
    page = render(report_of(learned))
    assert "1,234 were simulated" in page
    assert "learning curve" in page


def test_a_placer_that_has_ruled_out_all_is_believed():
    graph = make_graph(dict.fromkeys("abc", 1.0), param_bytes=dict.fromkeys("abc", 6))
    problem = make_problem(graph, make_cluster(2, memory=10))
    report = report_of(placement_of(problem, [0, 0, 1], method="exact", lower_bound=np.inf))
    assert report.base.infeasibility is None
    why = "no placement fits in memory: exact has ruled out every one"
    assert verdict(report)[1] == report.rows[0]["infeasibility"] == why
    assert values(report)["Gap to the bound"] == ("–", "none fits")
    assert "is below" not in " ".join(verdict(report))
    render(report)


def test_what_ran_under_other_costs_is_said_only_if_it_did():
    report = report_of(chosen([0, 0, 1, 0], method="annealing"))
    stands = tuple(
        replace(outcome, other_step_time=outcome.step_time + 1) for outcome in report.outcomes
    )
    again = tuple(replace(outcome, again=("etf",)) for outcome in stands)
    none = tuple(replace(outcome, again=()) for outcome in stands)
    clause = "nor any that the quickest placers find under those costs."
    assert sensitivity_sentence(replace(report, outcomes=again)).endswith(clause)
    assert sensitivity_sentence(replace(report, outcomes=none)).endswith("table is faster.")


def test_where_costs_make_it_too_large_the_choice_depends_on_them():
    report = report_of(chosen([0, 0, 1, 1], method="annealing"))
    fits = report.outcomes[0]
    never = replace(report.outcomes[1], step_time=np.inf, other=None, other_step_time=np.inf)
    sentence = sensitivity_sentence(replace(report, outcomes=(fits, never)))
    assert sentence == (
        "The choice depends on the costs: with bandwidth −25%, neither it nor any other in the "
        "table would fit in memory."
    )


def test_what_no_single_device_can_run_is_said():
    graph = replace(
        FORK,
        op_seconds={"k": np.array([1, np.inf, 10, 1]), "l": np.array([np.inf, 10, 10, 1])},
    )
    cluster = make_cluster(2)
    devices = (cluster.devices[0], replace(cluster.devices[1], kind="l"))
    problem = make_problem(graph, replace(cluster, devices=devices))
    note = values(report_of(placement_of(problem, [0, 1, 0, 0])))["Over one device"][1]
    assert note.endswith("as far as it can")


def test_a_channel_that_carries_nothing_has_no_lane():
    figure = timeline_figure(report_of(chosen([1, 1, 0, 1])))
    assert [lane["number"] for lane in figure["channels"]] == [0, 1]
    figure = timeline_figure(report_of(chosen([1, 0, 0, 0])))
    assert [lane["number"] for lane in figure["channels"]] == [1]
    assert figure["still_channels"] == 1


def test_placers_are_ranked_and_the_choice_is_marked_once():
    report = report_of(chosen([0, 0, 1, 0], method="annealing"))
    table = placers(report)
    names = [row["name"] for row in table["rows"]]
    assert names.index("etf") < names.index("annealing") < names.index("single")
    assert [row["name"] for row in table["rows"] if row["chosen"]] == ["annealing"]
    single = next(row for row in table["rows"] if row["name"] == "single")
    assert (single["step_time"], single["ratio"], single["gap"]) == ("22 s", "1.000", "69.2%")
    longest = max(each.step_time for each in report.others.placements)
    assert single["bar"] == 22 / longest
    assert table["bound"] == 13 / longest


def test_sensitivity_says_who_wins_and_what_is_lost():
    report = report_of(chosen([0, 0, 1, 0], method="annealing"))
    assert "Even with the costs as believed, expert is faster" in sensitivity_sentence(report)
    row = outcome_rows(report)[0]
    assert (row["winner"], row["margin"], row["loss"]) == ("expert", "7.7%", "7.7%")
    best = report_of(chosen([0, 0, 1, 1], method="annealing"))
    assert sensitivity_sentence(best).startswith("The choice stands")
    assert {row["loss"] for row in outcome_rows(best)} == {"–"}


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


def test_it_says_what_was_run():
    report = report_of(chosen([0, 0, 1, 1], method="annealing", seed=7), date="2026-01-02")
    pairs = dict(run_pairs(report))
    assert pairs["Command"] == "placeto place …"
    assert pairs["Seed"] == "7"
    assert pairs["Date"] == "2026-01-02"
    assert pairs["Graph"].startswith("by hand: 4 ops, 3 tensors")
    assert "placeto 0" in pairs["Versions"]


def test_what_was_measured_is_on_the_page():
    rows = (
        {
            "method": "auto",
            "kept": True,
            "simulated_step_time": 13.0,
            "step_time": 15.0,
            "interval": [14.5, 15.5],
            "feasible": True,
            "reason": "",
        },
    )
    report = report_of(chosen([0, 0, 1, 1]), measured=rows)
    assert values(report)["Step time"][1] == "simulated; 15 s measured"
    assert "14.5 s to 15.5 s" in render(report)


def test_what_was_kept_as_it_ran_fastest_need_not_be_so_by_simulation():
    trace = ((1, 1.0, 14.0), (2, 2.0, 13.0))
    kept = chosen([0, 0, 1, 0], method="annealing", trace=trace, wall_seconds=2.0)
    rows = (
        {"method": "annealing", "kept": False, "simulated_step_time": 13.0, "step_time": 17.0,
         "interval": [16.0, 18.0], "feasible": True, "reason": ""},
        {"method": "annealing", "kept": True, "simulated_step_time": 14.0, "step_time": 15.0,
         "interval": [14.5, 15.5], "feasible": True, "reason": ""},
    )  # fmt: skip
    report = report_of(kept, measured=rows)
    assert "expert found a faster one by simulation, 13 s" in verdict(report)[1]
    assert sensitivity_sentence(report).endswith(
        "; it was kept as the fastest of those that were run on real devices."
    )
    assert search_figure(report)["last"] == "13 s"


def test_long_names_lose_their_middle():
    assert shortened("a" * 100) == "a" * 100
    assert len(shortened("a" * 500 + "b" * 500)) == 100
    assert shortened("a" * 500 + "b" * 500)[:3] + shortened("a" * 500 + "b" * 500)[-3:] == "aaabbb"


def test_a_step_that_never_ends_has_no_report(tmp_path):
    graph = replace(FORK, op_seconds={"k": np.array([1.0, np.inf, 1.0, 1.0]), "l": np.ones(4)})
    cluster = make_cluster(2)
    devices = (cluster.devices[0], replace(cluster.devices[1], kind="l"))
    problem = make_problem(graph, replace(cluster, devices=devices))
    with pytest.raises(PlacetoError, match="never ends"):
        report_of(placement_of(problem, [0, 0, 0, 0]))
    with pytest.raises(PlacetoError, match="takes no time"):
        report_of(chosen([0], make_graph({"a": 0.0})))


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    report = report_of(chosen([0, 0, 1, 1]))
    with pytest.raises(PlacetoError, match="cannot be written"):
        save_report(report, tmp_path / "missing" / "report.html")
    save_report(report, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text().endswith("</html>")


def test_names_that_are_no_text_are_written(tmp_path):
    # As Python has the bytes of a file name that is not UTF-8.
    report = report_of(chosen([0, 0, 1, 1]), date="\udcff")
    save_report(report, tmp_path / "report.html")
    assert "\\udcff" in (tmp_path / "report.html").read_text(encoding="utf-8")


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
    problem = PlacementProblem(graph, make_cluster(4, bandwidth=1e10, launch_overhead=1e-6), 300)
    page = render(report_of(place(problem, "random")))
    assert len(page.encode()) < 3e6
