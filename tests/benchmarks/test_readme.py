import json

from benchmarks import placers
from benchmarks.readme import BLOCK, README, filled


def test_tables_of_the_readme_are_those_of_the_results():
    text = README.read_text()
    assert len(BLOCK.findall(text)) >= 2
    assert text == filled(text)


def test_table_is_that_of_the_rows():
    rows = json.loads((placers.RESULTS / "placers.json").read_text())["rows"]
    assert (placers.RESULTS / "placers.md").read_text() == placers.markdown(rows)
