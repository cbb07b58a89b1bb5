"""Which ops of a step PyTorch keeps on one device, since they compute inside of one module.

A module is *placed whole* when all of it is on one device. `torch.nn` moves nothing by itself, and
what moves tensors between devices for it (Hugging Face Accelerate's hooks) does so where a
placed module is called. So a module is whole if it has none inside of it, if it has parameters or
buffers of its own, or if its own `forward` combines what it was given with what a module inside of
it made (a residual connection): its inputs would be on another device than what is computed from
them. All other modules only pass tensors on, and the modules inside of them may be apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from placeto.extraction.pytorch.capture import BUFFER, PARAMETER
from placeto.extraction.pytorch.ops import BACKWARD, FORWARD, GRADIENTS, STATE, UPDATE, Op
from placeto.grouping.disjoint_sets import shared_keys
from placeto.support.arrays import Ints


def colocation_keys(
    ops: Sequence[Op], owners: Mapping[str, Sequence[str]], paths: Iterable[str], *, whole: bool
) -> Ints:
    """(num_ops,) keys of ops that must share a device, from 0 in order of appearance; -1 for none.

    A parameter shares one with the ops that read it where its owner computes, and with its update.

    Args:
        ops: of one step, in topological order.
        owners: parameter -> paths of the modules that hold it.
        paths: of all modules, "" for the model itself.
        whole: whether ops share a device too that compute inside of one whole module.
    """
    joined = DisjointSet(range(len(ops)))
    for number, op in enumerate(ops):
        for source, _ in op.inputs:
            if ops[source].phase == PARAMETER and (
                op.phase == UPDATE or not _was_given(op.path, owners[ops[source].name])
            ):
                joined.merge(source, number)
    if whole:
        _join_modules(ops, _whole_modules(ops, owners, set(paths)), joined)
    return shared_keys(np.array([joined[number] for number in range(len(ops))]))


def _was_given(path: str | None, owners: Sequence[str]) -> bool:
    # A module inside of the owner has its parameter as an argument, which can be moved.
    return all(path != owner and _inside(path, owner) for owner in owners)


def _inside(path: str | None, module: str) -> bool:
    """Whether what has a path is in a module or inside of it."""
    return path is not None and (module in ("", path) or path.startswith(f"{module}."))


def _whole_modules(
    ops: Sequence[Op], owners: Mapping[str, Sequence[str]], paths: set[str]
) -> dict[str, str]:
    """Module -> the outermost whole module that it is in."""
    parents = {path.rpartition(".")[0] for path in paths if path}
    held = {owner for paths_of in owners.values() for owner in paths_of}
    held |= {op.path for op in ops if op.phase == BUFFER and op.path is not None}
    # The model's own state stays where the model's inputs go; it may be apart all the same.
    whole = {path for path in paths if path and (path not in parents or path in held)}
    for op in ops:
        if op.phase == FORWARD and op.path and len(op.inputs) > 1:
            where = [_inside(ops[source].path, op.path) for source, _ in op.inputs]
            if not all(where):
                whole.add(op.path)
    outermost = {}
    for path in paths:
        around = accumulate(path.split("."), "{}.{}".format)
        outermost[path] = next((each for each in around if each in whole), "")
    # A model with no module inside of it is whole as any other.
    return {path: unit for path, unit in outermost.items() if unit or not parents}


def _join_modules(ops: Sequence[Op], unit: Mapping[str, str], joined: DisjointSet) -> None:
    first: dict[str, int] = {}
    fixed = [False] * len(ops)
    for number, op in enumerate(ops):
        if op.path in unit or (op.path == "" and op.phase in STATE):
            joined.merge(first.setdefault(unit.get(op.path or "", ""), number), number)
            fixed[number] = True
        elif op.phase == FORWARD:
            # It runs where its inputs are. Inputs of the model, and what is computed from these
            # alone, are small change: they are taken to be wherever they are needed.
            sources = [source for source, _ in op.inputs if fixed[source]]
            if op.path is None and len({joined[source] for source in sources}) > 1:
                continue
            for source in sources:
                joined.merge(source, number)
            fixed[number] = bool(sources)
    _join_backward(ops, joined, fixed)


def _join_backward(ops: Sequence[Op], joined: DisjointSet, fixed: list[bool]) -> None:
    """Backward ops outside of whole modules go with their forward ops, or with their readers."""
    by_name = {op.name: number for number, op in enumerate(ops) if op.phase == FORWARD}
    reader: dict[int, int] = {}
    for number, op in enumerate(ops):
        for source, _ in op.inputs:
            reader.setdefault(source, number)
    for number, op in reversed(list(enumerate(ops))):
        if op.phase == BACKWARD and not fixed[number]:
            name = op.forward_name.removeprefix(GRADIENTS)
            partner = by_name.get(name, reader.get(number, number))
            if fixed[partner]:
                joined.merge(partner, number)
                fixed[number] = True
