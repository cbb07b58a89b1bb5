"""The JSON Schemas of the docs: they are those of what is read, and bundled files hold to them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from docs import schemas
from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.support import bundle
from placeto.support.files import read_json


def schema(name: str) -> Any:
    return json.loads((schemas.FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", schemas.KINDS)
def test_schemas_are_up_to_date(name: str) -> None:
    assert (schemas.FOLDER / f"{name}.json").read_text() == schemas.text(name), "make schemas"


def test_files_of_this_package_are_valid(tmp_path: Path) -> None:
    for name in bundle.names("clusters", (".yaml",)):
        text = bundle.find("clusters", (".yaml",), name).read_text()
        jsonschema.validate(yaml.safe_load(text), schema("cluster"))
    graph = read_json(bundle.find("graphs", (".json.gz",), "nmt_small"))
    jsonschema.validate(graph, schema("graph"))
    for name in bundle.names("policies", (".json",)):
        card = read_json(bundle.find("policies", (".json",), name))
        jsonschema.validate(card, schema("policy"))
    problem = PlacementProblem(load_graph("nmt_small"), load_cluster("k80x2"))
    place(problem, "single").save(tmp_path / "p.json")
    jsonschema.validate(read_json(tmp_path / "p.json"), schema("placement"))
