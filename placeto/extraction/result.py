"""What an extraction yields: the graph with costs, and the graph that can be run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.graph import ComputationGraph, save_graph
from placeto.support.errors import PlacetoError
from placeto.support.files import write_bytes

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef


@dataclass(frozen=True)
class Extraction:
    """A training step as placeto reads it and, if it is of TensorFlow, as that runs it.

    Attributes:
        graph: the ops with their costs; `meta` says how to run them.
        graph_def: the same ops under the same names, and initializers of the variables; needs
            nothing else to run. None where the source is not TensorFlow's.
    """

    graph: ComputationGraph
    graph_def: GraphDef | None

    def save(self, path: str | Path) -> Path | None:
        """Writes the graph file and, if there is a GraphDef, `<stem>.graphdef.gz` beside it.

        Args:
            path: a name that ends in `.json` or `.json.gz`.

        Returns:
            The path of the GraphDef, if there is one. The graph's `meta["run"]` names it and holds
            the SHA-256 of the GraphDef before compression.

        Raises:
            PlacetoError: another ending, or the files cannot be written.
        """
        path = Path(path)
        if not path.name.endswith((".json", ".json.gz")):
            raise PlacetoError(f"{path}: a graph file's name ends in .json or .json.gz")
        if self.graph_def is None:
            save_graph(self.graph, path)
            return None
        stem = path.name.removesuffix(".gz").removesuffix(".json")
        beside = path.with_name(f"{stem}.graphdef.gz")
        data = self.graph_def.SerializeToString(deterministic=True)
        digest = hashlib.sha256(data).hexdigest()
        run = {**self.graph.meta["run"], "graph_def": beside.name, "sha256": digest}
        write_bytes(beside, data)
        save_graph(replace(self.graph, meta={**self.graph.meta, "run": run}), path)
        return beside


def batch_meta(examples: object) -> dict[str, int]:
    """What `meta` says of how many examples a step has; nothing where that is not known."""
    return {"batch": examples} if type(examples) is int and examples > 0 else {}


def tensor_columns(
    sizes: Mapping[tuple[int, Any], int], reads: Iterable[tuple[tuple[int, Any], int]]
) -> dict[str, Any]:
    """The columns of a `ComputationGraph` that say who sends what to whom.

    Args:
        sizes: tensor, a pair of its producer and what tells it from others of that op -> bytes.
        reads: (tensor, consumer) pairs.
    """
    row = {tensor: index for index, tensor in enumerate(sizes)}
    edges = np.array([(row[tensor], op) for tensor, op in reads], dtype=np.int64).reshape(-1, 2)
    return {
        "tensor_producer": np.array([op for op, _ in sizes], dtype=np.int64),
        "tensor_bytes": np.array(list(sizes.values()), dtype=np.int64),
        "edge_tensor": edges[:, 0],
        "edge_consumer": edges[:, 1],
    }


def unique(name: str, taken: dict[str, int]) -> str:
    """A name, with a number behind it where it is taken; `taken` has the last number of each."""
    candidate = name
    while candidate in taken:
        taken[name] += 1
        candidate = f"{name}_{taken[name]}"
    taken[candidate] = 0
    return candidate


def some(names: Sequence[str], most: int = 10) -> str:
    """The first of many names, for a warning."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
