"""Makes the bundled graphs again: `python -m placeto.extraction.bundled [NAME…]`."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from placeto.extraction import extract
from placeto.graph import ComputationGraph, save_graph
from placeto.support.bundle import FOLDERS
from placeto.support.errors import PlacetoError
from placeto.zoo.families import members

SOURCES = {
    "inception_v3": "keras:InceptionV3?batch=32",
    "resnet50": "zoo:resnet50?batch=32",
    "nasnet": "zoo:nasnet?size=mobile&batch=32",
    "rnnlm": "zoo:rnnlm?layers=2&batch=64",
    "nmt": "zoo:nmt?layers=2&batch=64",
    "nmt_4": "zoo:nmt?layers=4&batch=64",
    "nmt_8": "zoo:nmt?layers=8&batch=64",
    "transformer": "zoo:transformer?layers=12&batch=32",
    # Of each family a small graph, and one to train on.
    "cifar10_small": members("cifar10")[20].source,
    "nmt_small": members("nmt")[29].source,
    "ptb_small": members("ptb")[12].source,
    "transformer_small": members("transformer")[15].source,
}

# Steps of eight microbatches, without the GraphDef: they are there to be searched.
PIPELINED = {
    f"{name}_m8": f"{SOURCES[name]}&microbatches=8"
    for name in ("cifar10_small", "nmt_small", "ptb_small", "transformer_small")
}


# Kinds of the presets, and `p100`; what else is extracted would make the files larger.
KINDS = ("cpu", "k40", "k80", "p100", "v100", "a100", "h100")


def main(names: Sequence[str]) -> int:
    """Extracts the named bundled graphs, or all, into the package's data; returns the status."""
    # Without this the runtime greets on stderr when it is imported by a dependency first.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        known = SOURCES | PIPELINED
        for name in names or known:
            if name not in known:
                raise PlacetoError(f"no bundled graph {name!r}; there are {', '.join(known)}")
            path = FOLDERS["graphs"] / f"{name}.json.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            extraction = extract(known[name], progress=partial(print, f"{name}:"))
            # A source's own name would be that of several: graphs in one study need different ones.
            graph = _with_kinds(replace(extraction.graph, name=name))
            if name in PIPELINED:
                save_graph(graph, path)
            else:
                replace(extraction, graph=graph).save(path)
    except PlacetoError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _with_kinds(graph: ComputationGraph) -> ComputationGraph:
    costs = graph.meta["costs"]
    known = {kind: costs["kinds"][kind] for kind in KINDS}
    return replace(
        graph,
        op_seconds={kind: graph.op_seconds[kind] for kind in KINDS},
        meta={**graph.meta, "costs": {**costs, "kinds": known}},
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
