import json
import re

import pytest

from benchmarks import fidelity, measured_groups, placers, win
from benchmarks.alternating import measured
from benchmarks.readme import BLOCK, README, filled
from benchmarks.speed import report
from placeto.cli import COMMANDS

TEXT = README.read_text()


def test_tables_of_the_readme_are_those_of_the_results():
    assert len(BLOCK.findall(TEXT)) == 8
    assert filled(TEXT) == TEXT


def test_table_is_that_of_the_rows():
    rows = json.loads((placers.RESULTS / "placers.json").read_text())["rows"]
    assert (placers.RESULTS / "placers.md").read_text() == placers.markdown(rows)


@pytest.mark.parametrize("study", [fidelity, measured_groups, win])
def test_tables_of_what_was_measured_are_those_of_the_figures(study):
    name = study.__name__.removeprefix("benchmarks.")
    document = json.loads((placers.RESULTS / f"{name}.json").read_text())
    assert (placers.RESULTS / f"{name}.md").read_text() == study.markdown(document["graphs"])


def test_what_the_readme_says_of_what_was_measured():
    graphs = json.loads((placers.RESULTS / "fidelity.json").read_text())["graphs"]
    assert all(graph["figures"]["held"]["error"] < 0.055 for graph in graphs.values())
    assert all(len(graph["rows"]) >= 30 for graph in graphs.values())
    agree = [f"{graph['again']['spearman']:.2f}" for graph in graphs.values()]
    assert "by {}, {} and {} only".format(*agree) in " ".join(TEXT.split())
    rows = json.loads((placers.RESULTS / "win.json").read_text())["graphs"]["two_towers"]["rows"]
    seconds = {row["label"]: measured(row) for row in rows}
    assert min(seconds, key=seconds.__getitem__) == "found"


def test_tables_of_speed_are_those_of_the_figures():
    document = json.loads((placers.RESULTS / "speed.json").read_text())
    assert (placers.RESULTS / "speed.md").read_text() == report.markdown(document)


def test_commands_of_the_readme_exist():
    commands = re.findall(r"^placeto (\w+)", TEXT, re.MULTILINE)
    assert set(commands) == set(COMMANDS)


def test_what_the_readme_says_of_finer_groups_for_real():
    graphs = json.loads((placers.RESULTS / "measured_groups.json").read_text())["graphs"]
    single, coarse, fine = (
        {name: graph["rows"][number] for name, graph in graphs.items()} for number in range(3)
    )
    assert all(fine[name]["simulated"] < coarse[name]["simulated"] for name in graphs)
    ahead = [name for name in graphs if measured(fine[name]) < measured(coarse[name])]
    assert ahead == ["nmt", "ptb"]
    assert all(measured(fine[name]) < measured(single[name]) for name in ahead)
    others = set(graphs) - set(ahead)
    assert all(measured(single[name]) < measured(coarse[name]) for name in others)
    off = [
        name
        for name in graphs
        for row in (coarse[name], fine[name])
        if abs(row["held"] / measured(row) - 1) > 0.2
    ]
    assert set(off) == {"cifar10"}
