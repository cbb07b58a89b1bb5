import json

import pytest

from benchmarks import fidelity, measured_groups, placers, runtime
from benchmarks.readme import BLOCK, README, filled

TEXT = README.read_text()


def test_tables_of_the_readme_are_those_of_the_results():
    assert len(BLOCK.findall(TEXT)) == 3
    assert filled(TEXT) == TEXT


def test_table_is_that_of_the_rows():
    rows = json.loads((placers.RESULTS / "placers.json").read_text())["rows"]
    assert (placers.RESULTS / "placers.md").read_text() == placers.markdown(rows)
    shown = placers.markdown(placers.short(rows))
    assert (placers.RESULTS / "placers_short.md").read_text() == shown


@pytest.mark.parametrize("study", [fidelity, measured_groups, runtime])
def test_tables_of_what_was_measured_are_those_of_the_figures(study):
    name = study.__name__.removeprefix("benchmarks.")
    document = json.loads((placers.RESULTS / f"{name}.json").read_text())
    assert (placers.RESULTS / f"{name}.md").read_text() == study.markdown(document["graphs"])


def test_what_the_readme_shows_of_the_runtime():
    graphs = json.loads((placers.RESULTS / "runtime.json").read_text())["graphs"]
    assert (placers.RESULTS / "runtime_short.md").read_text() == runtime.short(graphs)


def test_what_the_readme_shows_of_what_searches_find():
    graphs = json.loads((placers.RESULTS / "fidelity.json").read_text())["graphs"]
    assert (placers.RESULTS / "fidelity_short.md").read_text() == fidelity.short(graphs)
