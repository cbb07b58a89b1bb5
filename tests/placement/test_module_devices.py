"""Placements of PyTorch modules as maps, and what Accelerate makes of these."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeto
from placeto import Cluster, Device, PlacementProblem, PlacetoError, device_map
from placeto.cli import main
from placeto.cluster import Channel
from placeto.extraction import extract
from placeto.graph import ComputationGraph
from placeto.placement.module_devices import check_device_map, torch_devices
from tests.extraction.pytorch import models

MODELS = "tests.extraction.pytorch.models"
NAMES = ("first", "second")


def cluster(*tensorflow: str | None, names: tuple[str, str] = NAMES) -> Cluster:
    devices = tuple(
        Device(name, "k80", 2**30, tensorflow=other)
        for name, other in zip(names, tensorflow, strict=True)
    )
    return Cluster("two", devices, (Channel("all", names, names, 1e9),))


TWO = cluster("/device:GPU:1", "/job:localhost/replica:0/task:0/device:CPU:0")


@pytest.fixture(scope="module")
def language() -> ComputationGraph:
    return extract(f"{MODELS}:language?loss=crossentropy").graph


def placed(problem: PlacementProblem, device: dict[str, int]) -> Any:
    """Devices of the groups: those of the modules whose paths begin so; others on 0."""
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    paths = problem.graph.meta["pytorch"]["modules"]
    for path, group in zip(paths, problem.op_group.tolist(), strict=True):
        for start, number in device.items():
            if path is not None and path.startswith(start):
                devices[group] = number
    return devices


def test_whole_modules_and_what_is_inside_of_others(language: ComputationGraph) -> None:
    problem = PlacementProblem(language, TWO, "none")
    assert device_map(problem, placed(problem, {})) == {"": 1}
    split = placed(problem, {"blocks.1": 1, "head": 1})
    assert device_map(problem, split) == {
        "words": 1,
        "places": 1,
        "blocks.0": 1,
        "blocks.1": "cpu",
        "norm": 1,
        "head": "cpu",
        "unused": 1,
        "mask": 1,
    }
    together = placed(problem, {"blocks": 1})
    assert device_map(problem, together, {"second": "cuda:7"})["blocks"] == "cuda:7"


def test_a_shared_weight_is_in_the_map_under_both_names() -> None:
    graph = extract(f"{MODELS}:language?tied=true&layers=1&inference=true").graph
    problem = PlacementProblem(graph, TWO, "none")
    found = device_map(problem, placed(problem, {"blocks": 1}))
    assert (found["words"], found["head"], found["blocks"]) == (1, 1, "cpu")


def test_a_placement_op_by_op_may_split_a_module() -> None:
    graph = extract(f"{MODELS}:mlp?together=parameters").graph
    problem = PlacementProblem(graph, TWO, "none")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    names = list(graph.op_names)
    devices[problem.op_group[names.index("gradients/0/addmm/mm_2")]] = 1
    with pytest.raises(
        PlacetoError,
        match="module '0' of graph 'mlp' is split between first, second, but has parameters of its "
        r"own and must be whole; extract the graph with \?together=modules",
    ):
        device_map(problem, devices)
    devices[:] = 0
    devices[problem.op_group[names.index("1/relu")]] = 1
    with pytest.raises(PlacetoError, match=r"module '1' .* has ops of its own"):
        device_map(problem, devices)


def test_names_of_pytorch_in_a_cluster_file_go_before_tensorflows() -> None:
    first, second = TWO.devices
    found = replace(TWO, devices=(replace(first, torch="cuda:3"), second))
    assert torch_devices(found) == {"first": "cuda:3", "second": "cpu"}


def test_devices_that_are_called_as_pytorch_calls_them(language: ComputationGraph) -> None:
    named = cluster(None, None, names=("cuda:1", "cpu"))
    assert torch_devices(named) == {"cuda:1": "cuda:1", "cpu": "cpu"}
    problem = PlacementProblem(language, named, "none")
    check_device_map(problem.graph, problem.cluster)
    assert set(device_map(problem, placed(problem, {})).values()) == {"cuda:1"}
    assert device_map(problem, placed(problem, {}), {"cuda:1": 3}) == {"": 3}


@pytest.mark.parametrize("source", ["scaled", "vectors", "recurrent?inference=true", "language"])
def test_every_placement_covers_each_parameter_once(source: str) -> None:
    graph = extract(f"{MODELS}:{source}").graph
    problem = PlacementProblem(graph, TWO, "none")
    states = {name for names in graph.meta["pytorch"]["states"].values() for name in names}
    generator = np.random.default_rng(0)
    for _ in range(30):
        found = device_map(problem, generator.integers(0, 2, problem.num_groups))
        for name in states:
            covering = [path for path in found if not path or f"{name}.".startswith(f"{path}.")]
            assert len(covering) == 1


# The model's own buffer has to be in the map, and is no module.
@pytest.mark.filterwarnings("ignore:The following device_map keys do not match:UserWarning")
@pytest.mark.parametrize("tied", [False, True])
def test_accelerate_dispatches_by_the_map(tmp_path: Path, tied: bool) -> None:
    import torch

    logging.getLogger("accelerate").setLevel(logging.ERROR)
    accelerate = pytest.importorskip("accelerate")
    graph = extract(f"{MODELS}:language?inference=true&tied={str(tied).lower()}").graph
    problem = PlacementProblem(graph, TWO, "none")
    placement = placed(problem, {"places": 0, "blocks.1": 1, "norm": 1})
    found = device_map(problem, placement, {"first": "cpu", "second": "disk"})
    torch.manual_seed(1)
    module, _ = models.language(tied=tied)
    module.eval()
    text = torch.randint(0, 20, (2, 6))
    with torch.no_grad():
        expected = module(text)
        dispatched = accelerate.dispatch_model(
            module,
            found,
            main_device="cpu",
            offload_dir=tmp_path,
            # It reads the weight of a module inside of it, which it does not call.
            preload_module_classes=["MultiheadAttention"],
        )
        torch.testing.assert_close(dispatched(text), expected)
    # Where it is not computing, what is on the disk has no memory.
    where = {name: tensor.device.type for name, tensor in dispatched.named_parameters()}
    assert len(set(where.values())) == 2
    for name, device in where.items():
        path = max((each for each in found if name.startswith(each)), key=len)
        assert device == {"cpu": "cpu", "disk": "meta"}[found[path]], name
    stored = {path.stem for path in tmp_path.glob("*.dat")}
    assert "blocks.1.attention.in_proj_weight" in stored
    assert not any(name.startswith("blocks.0") for name in stored)


def test_the_command_writes_the_map(
    tmp_path: Path, language: ComputationGraph, capsys: pytest.CaptureFixture[str]
) -> None:
    placeto.save_graph(language, tmp_path / "language.json")
    placeto.save_cluster(TWO, tmp_path / "two.yaml")
    command = ["place", str(tmp_path / "language.json"), "--method", "single", "--json"]
    output = tmp_path / "map.json"
    two = ["--cluster", str(tmp_path / "two.yaml")]
    assert main([*command, *two, "--device-map", str(output)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["device_map"] == str(output)
    assert json.loads(output.read_text()) in ({"": 1}, {"": "cpu"})
    assert f"the device map is in {output}" in captured.err
    output.unlink()
    assert main(["place", "nmt", *command[2:], "--cluster", "k80x2", "--device-map", "map"]) == 2
    assert "does not say which modules its ops are of" in capsys.readouterr().err
    placeto.save_cluster(cluster("/device:GPU:0", None), tmp_path / "two.yaml")
    assert main([*command, *two, "--device-map", str(output)]) == 2
    assert "device 'second' has no name in PyTorch" in capsys.readouterr().err
    placeto.save_cluster(cluster("/device:GPU:0", "/job:a/task:1/device:GPU:0"), two[1])
    assert main([*command, *two, "--device-map", str(output), "-o", f"{tmp_path}/p.json"]) == 2
    assert "several devices have one name in PyTorch (0)" in capsys.readouterr().err
    assert not output.exists()
    assert not (tmp_path / "p.json").exists()  # said before the search
