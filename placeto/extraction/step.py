"""A training step as a TensorFlow graph, before any cost is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow.core.framework.graph_pb2 import GraphDef

_SMALL = 16


@dataclass(frozen=True)
class InitialValue:
    """What is remembered of a variable's value before the first step.

    Attributes:
        stored: the elements, or one element that all others equal; None for many different
            floating-point numbers.
        mean: their mean.
        deviation: their standard deviation.
    """

    stored: NDArray[Any] | None
    mean: float = 0.0
    deviation: float = 0.0


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
        examples: how many a step has, all microbatches together, if known.
        phases: of a step of several microbatches, op -> phase; see `ComputationGraph`.
        warnings: what there is to say of how the step was made.
    """

    name: str
    graph_def: GraphDef
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    initial: Mapping[str, InitialValue] = field(default_factory=dict)
    batch: int | None = None
    examples: int | None = None
    phases: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def roots(self) -> list[str]:
        """Everything that must run: fetches and targets."""
        return [*self.fetches, *self.targets]


def summarized(value: NDArray[Any]) -> InitialValue:
    """The summary of a value: exact if it is small, constant, or not of floating-point type."""
    if value.size > _SMALL and (value == value.flat[0]).all():
        return InitialValue(value.flat[0])
    if value.size <= _SMALL or not np.issubdtype(value.dtype, np.floating):
        return InitialValue(value)
    mean = float(value.mean(dtype=np.float64))
    square = float(np.square(value).mean(dtype=np.float64))
    return InitialValue(None, mean, max(square - mean**2, 0.0) ** 0.5)


def op_of(tensor: str) -> str:
    """The op of an input or a fetch: `^a`, `a`, `a:1` -> `a`."""
    return tensor.removeprefix("^").split(":")[0]


def op_and_port(tensor: str) -> tuple[str, int]:
    """`a` -> `a`, 0; `a:1` -> `a`, 1; of a control dependency, `^a` -> `a`, -1."""
    name, _, port = tensor.partition(":")
    return (name[1:], -1) if name.startswith("^") else (name, int(port or 0))


def renamed(tensor: str, names: Mapping[str, str]) -> str:
    """An input of an op after ops were renamed: `^a`, `a`, `a:1` -> `^b`, `b`, `b:1`."""
    op = op_of(tensor)
    return tensor.replace(op, names[op], 1) if op in names else tensor
