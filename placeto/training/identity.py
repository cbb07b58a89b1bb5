"""What makes a training run the run that it is: problems, settings, scheme."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from placeto import cluster as clusters
from placeto import graph as graphs
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError

Identity = dict[str, Any]
"""A document of JSON: `problems`, `training`, and, where there are any, `validation`, `scheme`."""


def identity_of(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    validation: Sequence[PlacementProblem],
) -> Identity:
    """What names a run in one process.

    Raises:
        PlacetoError: two graphs on one cluster have the same name.
    """
    chosen_by = {"validation": _described(validation)} if validation else {}
    return {"problems": _described(problems), **chosen_by, "training": config.to_document()}


def check_same(directory: Path, before: Mapping[str, Any], now: Identity) -> None:
    """Makes sure that a run goes on as itself; only its number of updates may be another.

    Raises:
        PlacetoError: it would be another run.
    """
    if before.get("problems") != now["problems"]:
        raise PlacetoError(
            f"{directory}: holds a run on other graphs, another grouping or another cluster; "
            "give the same, or another directory"
        )
    if before.get("validation") != now.get("validation"):
        raise PlacetoError(
            f"{directory}: holds a run with other validation graphs; give the same, or another "
            "directory"
        )
    if before.get("scheme") != now.get("scheme"):
        raise PlacetoError(
            f"{directory}: holds a run with {_said(before)}, not {_said(now)}; give the same, "
            "or another directory"
        )
    old, new = before.get("training"), now["training"]
    if not isinstance(old, dict):
        raise PlacetoError(
            f"{directory / 'config.json'}: training is {old!r}, expected the settings of a run"
        )
    for key in new:
        if key != "updates" and old.get(key) != new[key]:
            raise PlacetoError(
                f"{directory}: holds a run with {key} = {old.get(key)!r}, not {new[key]!r}; "
                "give the same, or another directory"
            )


def _described(problems: Sequence[PlacementProblem]) -> list[dict[str, Any]]:
    names = [(problem.graph.name, problem.cluster.name) for problem in problems]
    for graph, cluster in names:
        if names.count((graph, cluster)) > 1:
            raise PlacetoError(
                f"two graphs are called {graph!r} on cluster {cluster!r}; names must be unique"
            )
    return [
        {
            "graph": problem.graph.name,
            "cluster": problem.cluster.name,
            "ops": problem.graph.num_ops,
            "groups": problem.num_groups,
            "devices": problem.num_devices,
            "digest": _digest(problem),
        }
        for problem in problems
    ]


def _digest(problem: PlacementProblem) -> str:
    """A number that is another for another problem, were its names and sizes the same."""
    documents = [graphs.to_document(problem.graph), clusters.to_document(problem.cluster)]
    parts = [json.dumps(documents).encode(), problem.op_group.tobytes(), problem.allowed.tobytes()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _said(run: Mapping[str, Any]) -> str:
    scheme = run.get("scheme") or {"mode": "synchronous"}
    return ", ".join(f"{key} {value}" for key, value in scheme.items())
