import json
import re

import pytest

from benchmarks import placers
from benchmarks.readme import BLOCK, README, filled
from benchmarks.speed import report
from placeto.cli import COMMANDS

TEXT = README.read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_tables_of_the_readme_are_those_of_the_results():
    assert len(BLOCK.findall(TEXT)) == 4
    assert filled(TEXT) == TEXT


def test_table_is_that_of_the_rows():
    rows = json.loads((placers.RESULTS / "placers.json").read_text())["rows"]
    assert (placers.RESULTS / "placers.md").read_text() == placers.markdown(rows)


def test_tables_of_speed_are_those_of_the_figures():
    document = json.loads((placers.RESULTS / "speed.json").read_text())
    assert (placers.RESULTS / "speed.md").read_text() == report.markdown(document)


@pytest.mark.parametrize("number", range(4))
def test_examples_run(number, capsys):
    exec(EXAMPLES[number], {})
    assert float(capsys.readouterr().out.split()[0]) > 0


def test_commands_of_the_readme_exist():
    commands = re.findall(r"^placeto (\w+)", TEXT, re.MULTILINE)
    assert set(commands) == set(COMMANDS)
    assert len(EXAMPLES) == 4
