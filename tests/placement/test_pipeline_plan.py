"""Where PyTorch modules can be split into stages, and the files that say where they are."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from placeto import PipelinePlan, PlacetoError, load_pipeline
from placeto.extraction import extract
from placeto.graph import BACKWARD
from placeto.placement.pipeline_plan import stage_units
from placeto.placers.pipeline import plan_pipeline
from tests.builders import make_graph

MODELS = "tests.extraction.pytorch.models"


def graph_of(name, options=""):
    return extract(f"{MODELS}:{name}?microbatches=2{options}").graph


def unit_by_name(graph):
    units = stage_units(graph)
    return units, dict(zip(graph.op_names, units.of_op.tolist(), strict=True))


def test_a_row_of_layers_is_split_before_each():
    graph = graph_of("mlp")
    units, unit = unit_by_name(graph)
    assert units.starts == ("1", "2")
    for name, number in unit.items():
        path = re.sub(r"microbatch\d/|gradients/|accumulate/", "", name)
        if path[0] in "012":
            assert number == int(path[0]), name
        else:
            assert number == (0 if "args" in name else 2), name  # what comes in, and the loss


@pytest.mark.parametrize("options", ["", "&together=parameters"])
@pytest.mark.parametrize("name", ["mlp", "convolutions", "language", "block"])
def test_units_hold_what_shares_a_device_and_copies(name, options):
    if name == "block":
        name, options = "language", f"{options}&layers=1"
    graph = graph_of(name, f"&loss=mse{options}" if name == "mlp" else options)
    units = stage_units(graph)
    assert len(np.unique(units.of_op)) == len(units.starts) + 1
    for key in np.unique(graph.colocation[graph.colocation >= 0]):
        assert len(np.unique(units.of_op[graph.colocation == key])) == 1
    copies = np.flatnonzero(graph.copy_of >= 0)
    assert (units.of_op[copies] == units.of_op[graph.copy_of[copies]]).all()
    # Forward goes forward, and backward back.
    source, target = graph.op_edges
    ahead = units.of_op[target] - units.of_op[source]
    inner = (graph.microbatch[source] >= 0) & (graph.microbatch[target] >= 0)
    both = inner & graph.is_forward[source] & graph.is_forward[target]
    assert ahead[both].min() >= 0
    back = inner & (graph.phase[source] == BACKWARD) & (graph.phase[target] == BACKWARD)
    assert ahead[back].max() <= 0


def test_blocks_stay_whole_and_shared_weights_leave_nothing_to_split():
    units = stage_units(graph_of("language", "&loss=crossentropy"))
    assert units.starts == ("blocks.0", "blocks.1", "norm", "head")
    tied = stage_units(graph_of("language", "&loss=crossentropy&tied=true"))
    assert tied.starts == ()
    assert (tied.of_op == 0).all()
    finer = stage_units(graph_of("language", "&loss=crossentropy&together=parameters"))
    assert {"blocks.0", "blocks.0.attention", "blocks.1.mlp", "head"} < set(finer.starts)


def test_a_module_that_is_called_again_later_is_no_place_to_begin():
    graph = graph_of("mlp")
    meta = {**graph.meta["pytorch"]}
    assert meta["called_once"] == ["0", "1", "2"]
    meta["modules"] = ["1" if path == "2" else path for path in meta["modules"]]
    again = replace(graph, meta={**graph.meta, "pytorch": meta})
    assert stage_units(again).starts == ("1",)
    # The first layer is called once more at the end.
    meta["modules"] = ["0" if path == "1" else path for path in meta["modules"]]
    between = [
        path if op.split("/")[-1] != "relu" else "9"
        for op, path in zip(graph.op_names, meta["modules"], strict=True)
    ]
    again = replace(graph, meta={**graph.meta, "pytorch": {**meta, "modules": between}})
    assert "0" not in stage_units(again).starts


def test_graphs_of_which_no_pipeline_is_made():
    with pytest.raises(PlacetoError, match="does not say which modules its ops are of"):
        stage_units(make_graph({"a": 1.0}))
    with pytest.raises(PlacetoError, match=r"has one microbatch.*\?microbatches=8"):
        stage_units(extract(f"{MODELS}:mlp").graph)


@pytest.fixture(scope="module")
def plan(pair_of_gpus) -> PipelinePlan:
    return plan_pipeline(graph_of("language", "&loss=crossentropy"), pair_of_gpus, "1f1b")[0]


@pytest.fixture(scope="module")
def pair_of_gpus():
    from placeto.cluster import Channel, Cluster, Device

    names = ("cuda:0", "cuda:1")
    devices = tuple(Device(name, "k80", 2**30) for name in names)
    return Cluster("two", devices, (Channel("all", names, names, 1e12),))


def test_a_plan_says_where_each_module_is_and_is_read_as_it_was_written(plan, tmp_path):
    path = tmp_path / "plan.json"
    plan.save(path)
    assert load_pipeline(path) == plan
    document = json.loads(path.read_text())
    assert (document["format"], document["version"]) == ("placeto.pipeline", 1)
    assert document["microbatches"] == 2
    assert document["schedule"] == "1f1b"
    modules = list(itertools.chain.from_iterable(stage["modules"] for stage in document["stages"]))
    assert sorted(modules) == sorted(set(modules))
    assert {"words", "places", "head"} <= set(modules)
    assert "blocks" in modules or {"blocks.0", "blocks.1"} <= set(modules)
    assert len(document["peak_memory"]) == len(document["stages"])
    for point, stage in zip(document["split_points"], document["stages"][1:], strict=True):
        assert stage["modules"][0] == point
        assert stage["device"] in ("cuda:0", "cuda:1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "placeto.graph"}, "format is 'placeto.graph', expected 'placeto.pipeline'"),
        ({"version": 2}, "version 2 of placeto.pipeline is later"),
        ({"schedule": "random"}, "schedule"),
        ({"microbatches": 0}, "microbatches is 0, expected 1 or more"),
        ({"split_points": ["a", "b", "c"]}, "3 split points; expected one between each two stages"),
        ({"stages": "two"}, "stages: expected a list, found a string"),
        ({"stages_per_process": 2}, "expected all devices in turn, as many times"),
        ({"schedule": "interleaved"}, "expected more than one if interleaved, else one"),
    ],
)
def test_files_that_are_no_plans(plan, tmp_path, change, said):
    path = tmp_path / "plan.json"
    plan.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(PlacetoError, match=re.escape(said)):
        load_pipeline(path)
