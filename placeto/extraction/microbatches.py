"""Ops of steps of several microbatches, named after these; see `placeto.zoo.microbatches`.

An op of microbatch 3 is called like the same op of microbatch 0, but for the `microbatch3/` in
front.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

from placeto.extraction.step import renamed
from placeto.graph import BACKWARD, FORWARD
from placeto.grouping.colocation import GRADIENT_SCOPES
from placeto.support.errors import PlacetoError
from placeto.zoo.microbatches import Section

_NUMBER = re.compile(r"_\d+(?=/|$)")  # by which TensorFlow tells equal names apart
_SCOPE = re.compile(r"(?:^|(?<=/))microbatch(\d+)/")


def named(
    graph_def: GraphDef, sections: Sequence[Section], shared: Collection[str]
) -> tuple[dict[str, str], dict[str, int]]:
    """Names the ops of each section after its microbatch.

    Args:
        graph_def: of the traced graph, its ops in the order in which they were traced; changed.
        sections: as they were begun.
        shared: names of ops that belong to all microbatches, whichever met them first.

    Returns:
        The old names of ops -> their new ones, and the new names -> phases.

    Raises:
        PlacetoError: two microbatches were not traced to the same ops.
    """
    nodes = list(graph_def.node)
    ends = [*(section.begin for section in sections[1:]), len(nodes)]
    first: dict[int, list[NodeDef]] = {}
    names: dict[str, str] = {}
    phases: dict[str, int] = {}
    # The inputs of all microbatches come before everything, those of one after those of another.
    begun = nodes[: sections[0].begin]
    inputs = [node for node in begun if node.op == "Placeholder" and node.name not in shared]
    few = len(inputs) // (1 + max(section.microbatch for section in sections))
    for number, node in enumerate(inputs):
        names[node.name] = f"microbatch{number // few}/{inputs[number % few].name}"
        phases[names[node.name]] = FORWARD
    for section, end in zip(sections, ends, strict=True):
        own = [node for node in nodes[section.begin : end] if node.name not in shared]
        copied = own
        if section.is_copied and section.microbatch >= 0:
            copied = _same_ops(own, first.setdefault(section.phase, own), section.microbatch)
        prefix = f"microbatch{section.microbatch}/" if section.microbatch >= 0 else ""
        for node, copy in zip(own, copied, strict=True):
            names[node.name] = prefix + copy.name
            phases[names[node.name]] = section.phase
    for node in nodes:
        node.name = names.get(node.name, node.name)
        node.input[:] = [renamed(tensor, names) for tensor in node.input]
    return names, phases


def _same_ops(own: Sequence[NodeDef], first: Sequence[NodeDef], number: int) -> list[NodeDef]:
    """Of the ops of microbatch 0 in a section, which each op of another microbatch is a copy of.

    They come in the same order. Some of microbatch 0 have no copy: TensorFlow remembers the shapes
    that sums of some shape have, for one. These come before others of their name, so that what is
    looked for from the end is found.
    """
    found: list[NodeDef] = []
    rest = iter(reversed(first))
    for node in reversed(own):
        wanted = node.op, _NUMBER.sub("", node.name)
        copy = next(
            (each for each in rest if (each.op, _NUMBER.sub("", each.name)) == wanted), None
        )
        if copy is None:
            raise PlacetoError(
                f"microbatch {number} is traced to other ops than microbatch 0 ({node.name}); a "
                "step that differs from call to call cannot be split"
            )
        found.append(copy)
    return found[::-1]


def microbatch_columns(names: Sequence[str], phases: Mapping[str, int]) -> dict[str, Any]:
    """`microbatch`, `copy_of` and `phase` of ops by their names; see `ComputationGraph`.

    What is of a function, or was made of an op by Grappler, has the op's phase. What Grappler left
    of microbatch 0 alone, such as equal reads of a variable that it merged, belongs to all.
    """
    index = {name: op for op, name in enumerate(names)}
    microbatch, copy_of, phase = [], [], []
    for name in names:
        found = _SCOPE.search(name)
        number = int(found[1]) if found else -1
        first = index.get(_SCOPE.sub("microbatch0/", name), -1) if number > 0 else -1
        microbatch.append(number)
        copy_of.append(first)
        known = name if found is None else name[found.start() :]
        while known and known not in phases:
            known = known.rpartition("/")[0]
        other = BACKWARD if any(scope in name for scope in GRADIENT_SCOPES) else FORWARD
        phase.append(phases.get(known, other))
    copied = set(copy_of)
    microbatch = [
        -1 if number == 0 and op not in copied else number for op, number in enumerate(microbatch)
    ]
    return {"microbatch": microbatch, "copy_of": copy_of, "phase": phase}
