"""A step of several microbatches, made of the ops of one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from placeto import graph
from placeto.extraction.pytorch.capture import CONSTANT
from placeto.extraction.pytorch.ops import BACKWARD, STATE, UPDATE, Op

_SHARED = (*STATE, CONSTANT)
_PHASES = {BACKWARD: graph.BACKWARD, UPDATE: graph.UPDATE}


def repeated(ops: Sequence[Op], count: int) -> tuple[list[Op], list[int]]:
    """Forward and backward for each microbatch, gradients added up, one update.

    Parameters and constants are there once. A buffer that the step changes, such as the mean that
    batch normalization keeps, is read as the microbatch before left it. As PyTorch's `backward`
    does, each microbatch but the first adds its gradient of each parameter to that of the first, in
    place: that one stays until the update, and what adds to it yields nothing that takes memory. An
    update waits for its own gradient alone, as the stages of a pipeline do not wait for each other.

    Args:
        ops: of one microbatch, in topological order.
        count: how many microbatches there are.

    Returns:
        The ops in topological order, and for each the number of the one in `ops` that it is or is
        a copy of; for a sum of gradients, that of the parameter.
    """
    made: list[Op] = []
    origin: list[int] = []
    numbers: dict[int, int] = {}  # by number in `ops`, of the microbatch at hand
    state: dict[tuple[int, int], tuple[int, int]] = {}  # what buffers have become
    # By parameter: the gradient of the first microbatch, and what added to it last.
    sums: dict[int, tuple[tuple[int, int], ...]] = {}

    def add(op: Op, number: int) -> int:
        made.append(op)
        origin.append(number)
        return len(made) - 1

    def read(source: tuple[int, int]) -> tuple[int, int]:
        return state.get(source, (numbers[source[0]], source[1]))

    updates = [op for op in ops if op.phase == UPDATE]
    for number, op in enumerate(ops):
        if op.phase in _SHARED:
            numbers[number] = add(op, number)
    first: dict[int, int] = {}
    for microbatch in range(count):
        scope = f"microbatch{microbatch}/"
        for number, op in enumerate(ops):
            if op.phase in (*_SHARED, UPDATE):
                continue
            copy = replace(
                op,
                name=scope + op.name,
                inputs=tuple(map(read, op.inputs)),
                microbatch=microbatch,
                copy_of=first.get(number, -1),
            )
            numbers[number] = add(copy, number)
            if microbatch == 0:
                first[number] = numbers[number]
        for (parameter, _), gradient, *_ in (op.inputs for op in updates):
            if microbatch == 0:
                sums[parameter] = (read(gradient),)
                continue
            weight = ops[parameter]
            total = Op(
                name=f"{scope}accumulate/{weight.name}",
                type="add",
                phase=BACKWARD,
                path=weight.path,
                inputs=(*sums[parameter], read(gradient)),
                moved_bytes=3 * weight.output_bytes[0],
                microbatch=microbatch,
            )
            sums[parameter] = (sums[parameter][0], (add(total, parameter), 0))
        state |= {
            (number, 0): read(op.becomes) for number, op in enumerate(ops) if op.becomes is not None
        }
    for number, op in enumerate(ops):
        if op.phase == UPDATE:
            weight_read, *_ = op.inputs
            add(replace(op, inputs=(read(weight_read), *sums[weight_read[0]])), number)
    return made, origin


def columns(ops: Sequence[Op]) -> dict[str, Any]:
    """`microbatch`, `copy_of` and `phase` of ops of a pipelined step; see `ComputationGraph`."""
    return {
        "microbatch": [op.microbatch for op in ops],
        "copy_of": [op.copy_of for op in ops],
        "phase": [_PHASES.get(op.phase, graph.FORWARD) for op in ops],
    }
