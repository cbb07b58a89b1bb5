"""Device maps against Accelerate's: `python -m benchmarks.device_maps`.

Inference of models of `benchmarks.torch_pipelines` on two unequal GPUs, the CPU and the disk, of
which the last two hold weights and compute nothing. Accelerate's `infer_auto_device_map` gets the
same limits; it fills one device after the other. Both maps are simulated. Then two of the models on
this machine's CPU, a part of their weights on its disk: calibrated, placed, and run by Accelerate.
It takes five minutes. Writes `results/device_maps.json` and `.md`.
"""

import logging
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import dispatch_model, infer_auto_device_map
from accelerate.utils import compute_module_sizes

from benchmarks.output import command_line, results_folder, save, table_of
from benchmarks.torch_pipelines.nets import NETS
from placeto import PlacementProblem
from placeto.cluster import Channel, Cluster, Device
from placeto.extraction import extract
from placeto.extraction.pytorch.source import trace_module
from placeto.extraction.source import Source, parse_source
from placeto.graph import ComputationGraph
from placeto.measurement.calibration.machine import machine
from placeto.measurement.pytorch.calibrate import calibrate_torch
from placeto.measurement.pytorch.detect import detect_cluster
from placeto.placement.offload import main_device, main_memory, stores, with_stores
from placeto.placers.device_maps import place_modules
from placeto.simulation import simulate
from placeto.support.arrays import Ints
from placeto.support.progress import silent
from placeto.support.units import format_bytes, format_seconds

SOURCES = {
    "gpt": "gpt?batch=4&words=32000&length=512&width=1024&layers=12",
    "encoder_decoder": "encoder_decoder?batch=8&length=512&width=1024",
    "resnet50": "resnet50?batch=2&side=224",
    "experts": "experts?batch=4096",
}
WHOLE = ["Block", "Bottleneck", "TransformerEncoderLayer", "TransformerDecoderLayer", "Experts"]
# In multiples of the weights, what each device may hold.
LIMITS = {
    "the faster GPU holds all": (2.0, 1.0, 4.0, 9.0),
    "both GPUs together": (0.9, 0.9, 4.0, 9.0),
    "the slower holds more": (0.6, 1.2, 4.0, 9.0),
    "a part on the CPU": (0.6, 0.4, 4.0, 9.0),
    "a part on the disk": (0.6, 0.3, 0.2, 9.0),
}
EXECUTED = {"gpt": "gpt?batch=4&words=8000", "vgg16": "vgg16?batch=8"}
ROUNDS = 9
SECONDS = 9.0


def box(limits: tuple[int, ...]) -> Cluster:
    """An A100, a P100 and the CPU, on PCI Express, and a disk."""
    names = ("cuda:0", "cuda:1", "cpu", "disk")
    kinds = ("a100", "p100", "cpu", "disk")
    devices = tuple(map(Device, names, kinds, limits, (3e-6, 5e-6, 0.0, 0.0)))
    channels = tuple(
        Channel(f"{a} to {b}", (a,), (b,), 2e9 if "disk" in (a, b) else 12e9, 10e-6)
        for a in names
        for b in names
        if a != b
    )
    return Cluster("unequal", devices, channels, "Bandwidth, latency, overheads: assumed.")


def accelerates(problem: PlacementProblem, module: Any, limits: tuple[int, ...]) -> Ints:
    """(num_groups,) devices by Accelerate's map."""
    known = dict(zip((0, 1, "cpu", "disk"), limits, strict=True))
    found = infer_auto_device_map(module, max_memory=known, no_split_module_classes=WHOLE)
    number = {0: 0, 1: 1, "cpu": 2, "disk": 3}
    graph = problem.graph
    devices = np.full(problem.num_groups, -1)
    for op, path in enumerate(graph.meta["pytorch"]["modules"]):
        if path is None:
            continue
        parts = path.split(".") if path else []
        around = [".".join(parts[:end]) for end in range(len(parts), -1, -1)]
        owner = next((each for each in around if each in found), None)
        if owner is None and graph.op_names[op] in found:
            owner = graph.op_names[op]  # a parameter of the model itself has its own entry
        group, is_state = problem.op_group[op], graph.op_types[op] == "parameter"
        if owner is not None and (is_state or devices[group] < 0):
            devices[group] = number[found[owner]]
    # What is of no module is where what it is made of is.
    source, target = graph.op_edges
    for _ in range(graph.num_ops):
        groups = problem.op_group[source], problem.op_group[target]
        open_ends = (devices[groups[1]] < 0) & (devices[groups[0]] >= 0)
        if not open_ends.any():
            break
        first = int(np.flatnonzero(open_ends)[0])
        devices[groups[1][first]] = devices[groups[0][first]]
    devices[devices < 0] = 0
    return devices


def row(graph: ComputationGraph, cluster: Cluster, devices: Ints) -> dict[str, Any]:
    """What a map is worth: `loaded` bytes of weights in a step, and whether all of it fits."""
    problem = PlacementProblem(*with_stores(graph, cluster, twice=0.0), "none")
    schedule = simulate(problem, devices)
    peak, main = schedule.peak_memory.copy(), main_device(cluster)
    peak[main] = main_memory(problem, devices)
    limits = [device.memory_bytes for device in cluster.devices]
    holding = np.isin(devices[problem.op_group], stores(cluster))
    return {
        "step_time": schedule.step_time, "loaded": int(graph.param_bytes[holding].sum()),
        "fits": bool((peak <= limits).all()), "peak": peak.tolist(),
    }  # fmt: skip


def executed(net: str, folder: Path) -> dict[str, Any]:
    """A model on this machine's CPU, with memory for its weights and nothing else, and its disk."""
    source = parse_source(f"benchmarks.torch_pipelines.nets:{EXECUTED[net]}&inference=true")
    found = calibrate_torch(
        [trace_module(source, silent)], detect_cluster("box", disk=folder), silent
    )
    (graph,), cluster = found.graphs, found.cluster
    weights = int(graph.param_bytes.sum())
    room = replace(cluster.devices[0], memory_bytes=weights)
    small = replace(cluster, devices=(room, *cluster.devices[1:]))
    placements = {
        "memory": place_modules(graph, cluster, budget_seconds=SECONDS),
        "disk": place_modules(graph, small, budget_seconds=SECONDS),
    }
    torch.set_num_threads(1)
    module, inputs = made(net, source)
    module.eval()
    seconds: dict[str, list[float]] = {name: [] for name in placements}
    with torch.no_grad(), tempfile.TemporaryDirectory(dir=folder) as stored:
        for name, placement in placements.items():
            runs = dispatch_model(
                module, placement.device_map(), main_device="cpu", offload_dir=stored,
                preload_module_classes=["MultiheadAttention"],
            )  # fmt: skip
            for _ in range(1 + ROUNDS):
                for file in Path(stored).glob("*.dat"):
                    forget(file)
                begin = time.perf_counter()
                runs(inputs)
                seconds[name].append(time.perf_counter() - begin)
    return {
        "model": net, "weights": weights,
        "predicted": {name: each.step_time for name, each in placements.items()},
        "loaded": row(graph, small, placements["disk"].devices)["loaded"],
        "seconds": {name: each[1:] for name, each in seconds.items()},
        "disk": cluster.channels[-1].bandwidth,
    }  # fmt: skip


def made(net: str, source: Source) -> tuple[torch.nn.Module, torch.Tensor]:
    """The module and its inputs."""
    options = {key: value for key, value in source.options.items() if key != "inference"}
    return NETS[net](**options)


def forget(file: Path) -> None:
    """Takes a file out of the system's cache."""
    handle = os.open(file, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def markdown(found: list[dict[str, Any]], runs: list[dict[str, Any]]) -> str:
    """A row a model and limit, then one a model that was run."""
    rows = []
    for each in found:
        own, theirs = each["placeto"], each["accelerate"]
        # What does not fit is no faster.
        ratio = f"{own['step_time'] / theirs['step_time']:.2f}" if theirs["fits"] else ""
        rows.append({
            "model": f"`{each['model']}`", "memory": each["limit"],
            "`placeto`": _shown(own), "loaded": format_bytes(own["loaded"]),
            "Accelerate": _shown(theirs), "its loaded": format_bytes(theirs["loaded"]),
            "ratio": ratio,
        })  # fmt: skip
    of_runs = []
    for each in runs:
        shown = {"model": f"`{each['model']}`", "weights": format_bytes(each["weights"])}
        shown["of the disk"] = format_bytes(each["loaded"])
        for name, place in (("memory", "all in memory"), ("disk", "with the disk")):
            shown[f"{place}, predicted"] = format_seconds(each["predicted"][name])
            shown["measured" + " " * (name == "disk")] = format_seconds(
                float(np.median(each["seconds"][name]))
            )
        of_runs.append(shown)
    return f"{table_of(rows)}\n{table_of(of_runs)}"


def _shown(each: dict[str, Any]) -> str:
    return format_seconds(each["step_time"]) + ("" if each["fits"] else ", does not fit")


def main() -> None:
    """Compares, and writes the results."""
    wanted = command_line("device_maps", "one model; results into build").parse_args()
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    found = []
    for net in list(SOURCES)[: 1 if wanted.quick else None]:
        source = parse_source(f"benchmarks.torch_pipelines.nets:{SOURCES[net]}&inference=true")
        graph = extract(source.text).graph
        module, _ = made(net, source)
        weights = compute_module_sizes(module)[""]
        for limit, shares in LIMITS.items():
            limits = tuple(int(share * weights) for share in shares)
            cluster = box(limits)
            problem = PlacementProblem(*with_stores(graph, cluster, twice=0.0), "none")
            theirs = accelerates(problem, module, limits)
            own = place_modules(
                graph, cluster, lambda a, b: PlacementProblem(a, b, "none"), "auto", SECONDS
            )
            found.append({
                "model": net, "limit": limit, "weights": weights, "limits": limits,
                "placeto": row(graph, cluster, own.devices),
                "accelerate": row(graph, cluster, theirs),
            })  # fmt: skip
    folder = Path("build/device-maps")
    folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for net in list(EXECUTED)[: 1 if wanted.quick else None]:
        print(f"running {net}", file=sys.stderr, flush=True)
        runs.append(executed(net, folder))
    document = {"machine": machine(), "seconds": SECONDS, "rows": found, "runs": runs}
    save("device_maps", document, markdown(found, runs), results_folder(wanted.quick))


if __name__ == "__main__":
    main()
