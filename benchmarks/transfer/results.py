"""The results file: JSON, its runs a table with a line for each, as names of columns are long."""

import json
from pathlib import Path
from typing import Any

from placeto.support.files import write_bytes


def read_results(path: Path) -> dict[str, Any]:
    """What is in a results file; each of `runs` a mapping from the columns' names."""
    document = json.loads(path.read_text())
    columns = document.pop("columns")
    return {**document, "runs": [dict(zip(columns, run, strict=True)) for run in document["runs"]]}


def write_results(path: Path, document: dict[str, Any]) -> None:
    """Writes what `read_results` reads; all runs have the same keys."""
    rest = {key: value for key, value in document.items() if key != "runs"}
    columns = list(document["runs"][0]) if document["runs"] else []
    head = json.dumps({**rest, "columns": columns}).removesuffix("}")
    lines = [json.dumps([run[column] for column in columns]) for run in document["runs"]]
    write_bytes(path, (head + ', "runs": [\n' + ",\n".join(lines) + "\n]}\n").encode())
