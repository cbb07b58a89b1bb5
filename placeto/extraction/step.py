"""A training step as a TensorFlow graph, before any cost is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

    from placeto.extraction.initial_value import InitialValue


@dataclass(frozen=True)
class TrainingStep:
    """One training step: forward, backward, optimizer update.

    Attributes:
        name: what the graph is to be called.
        graph_def: nodes and, until Grappler has inlined them, functions; no devices.
        fetches: tensors whose values the step returns, as `op:port`; the loss comes first.
        targets: ops that must run besides: the updates of variables.
        initial: variable (a `VarHandleOp`'s name) -> what is known of its first value; a
            variable without one is filled with small random numbers.
        batch: what to put for an unknown first dimension of an input, if known.
        warnings: what the caller should know, one line each.
    """

    name: str
    graph_def: GraphDef
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    initial: dict[str, InitialValue] = field(default_factory=dict)
    batch: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def roots(self) -> list[str]:
        """Everything that must run: fetches and targets."""
        return [*self.fetches, *self.targets]


def op_of(tensor: str) -> str:
    """The op of an input or a fetch: `^a`, `a`, `a:1` -> `a`."""
    return tensor.removeprefix("^").split(":")[0]
