"""JSON Schemas of the kinds of files, for editors that complete and check them."""

import json
from pathlib import Path

from msgspec.json import schema

from placeto.cluster import ClusterDocument
from placeto.graph import GraphDocument
from placeto.models.stored import PolicyDocument
from placeto.placement.pipeline_plan import PipelinePlan
from placeto.placement.placement import PlacementDocument
from placeto.support.files import write_bytes

FOLDER = Path(__file__).parent / "schemas"
KINDS = {
    "graph": GraphDocument,
    "cluster": ClusterDocument,
    "placement": PlacementDocument,
    "pipeline": PipelinePlan,
    "policy": PolicyDocument,
}


def text(name: str) -> str:
    """The schema of a kind of file, as its file has it."""
    return json.dumps(schema(KINDS[name]), indent=2) + "\n"


def main() -> None:
    """Writes all of them."""
    for name in KINDS:
        write_bytes(FOLDER / f"{name}.json", text(name).encode())


if __name__ == "__main__":
    main()
