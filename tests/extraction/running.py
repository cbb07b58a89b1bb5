"""Running a saved extraction from its GraphDef alone."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

STEPS = "tests.extraction.training_steps"


def saved_run(path: Path) -> tuple[dict[str, Any], Any]:
    """The `meta["run"]` of a graph file and its GraphDef, whose digest is checked."""
    from tensorflow.core.framework.graph_pb2 import GraphDef

    run = json.loads(gzip.decompress(path.read_bytes()))["meta"]["run"]
    data = gzip.decompress((path.parent / run["graph_def"]).read_bytes())
    assert hashlib.sha256(data).hexdigest() == run["sha256"]
    return run, GraphDef.FromString(data)


def losses(path: Path, steps: int, classes: int) -> list[float]:
    """The first fetch over some steps on one batch of random numbers."""
    import tensorflow as tf

    run, graph_def = saved_run(path)
    generator = np.random.default_rng(0)
    feed = {
        f"{each['name']}:0": generator.integers(0, classes, each["shape"])
        if each["dtype"].startswith("int")
        else generator.standard_normal(each["shape"])
        for each in run["inputs"]
    }
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session() as session:
            session.run(run["initializer"])
            return [
                float(session.run([run["fetches"][0], *run["targets"]], feed)[0])
                for _ in range(steps)
            ]
