"""Device maps against Accelerate's: `python -m benchmarks.device_maps`.

Inference of models of `benchmarks.torch_pipelines` on two unequal GPUs and the CPU, whose memories
hold the weights only together. Accelerate's `infer_auto_device_map` gets the same limits; it fills
one device after the other. Both maps are simulated. It takes a minute. Writes
`results/device_maps.json` and `.md`.
"""

from typing import Any

import numpy as np
from accelerate import infer_auto_device_map
from accelerate.utils import compute_module_sizes

from benchmarks.output import command_line, results_folder, save, table_of
from benchmarks.torch_pipelines.nets import NETS
from placeto import PlacementProblem, place
from placeto.cluster import Channel, Cluster, Device
from placeto.extraction import extract
from placeto.simulation import simulate
from placeto.support.arrays import Ints
from placeto.support.units import format_bytes, format_seconds

SOURCES = {
    "gpt": "gpt?batch=4&words=32000&length=512&width=1024&layers=12",
    "encoder_decoder": "encoder_decoder?batch=8&length=512&width=1024",
    "resnet50": "resnet50?batch=16&side=224",
    "experts": "experts?batch=4096",
}
WHOLE = ["Block", "Bottleneck", "TransformerEncoderLayer", "TransformerDecoderLayer", "Experts"]
# Of the weights, what each device may hold: the slower GPU has more room, the CPU enough.
LIMITS = {
    "the faster GPU holds all": (1.6, 0.8, 4.0),
    "both GPUs together": (0.75, 0.75, 4.0),
    "the slower holds more": (0.5, 1.0, 4.0),
    "a part on the CPU": (0.5, 0.4, 4.0),
}
SECONDS = 3.0


def box(limits: tuple[int, ...]) -> Cluster:
    """An A100, a P100 and the CPU, on PCI Express."""
    names = ("cuda:0", "cuda:1", "cpu")
    kinds = ("a100", "p100", "cpu")
    devices = tuple(map(Device, names, kinds, limits, (3e-6, 5e-6, 0.0)))
    channels = tuple(
        Channel(f"{a} to {b}", (a,), (b,), 12e9, 10e-6) for a in names for b in names if a != b
    )
    return Cluster("unequal", devices, channels, "Bandwidth, latency, overheads: assumed.")


def accelerates(problem: PlacementProblem, module: Any, limits: tuple[int, ...]) -> Ints | None:
    """(num_groups,) devices by Accelerate's map; None if it puts something on the disk."""
    known = dict(zip((0, 1, "cpu"), limits, strict=True))
    found = infer_auto_device_map(module, max_memory=known, no_split_module_classes=WHOLE)
    if "disk" in found.values():
        return None
    number = {0: 0, 1: 1, "cpu": 2}
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


def row(problem: PlacementProblem, devices: Ints) -> dict[str, Any]:
    """What a map is worth."""
    schedule = simulate(problem, devices)
    moved = int(problem.graph.tensor_bytes[schedule.transfers.tensor].sum())
    return {
        "step_time": schedule.step_time, "moved": moved, "fits": schedule.feasible,
        "peak": schedule.peak_memory.tolist(),
    }  # fmt: skip


def markdown(found: list[dict[str, Any]]) -> str:
    """A row a model and limit."""
    rows = []
    for each in found:
        own, theirs = each["placeto"], each["accelerate"]
        shown = {
            "model": f"`{each['model']}`", "memory": each["limit"],
            "`placeto`": _shown(own), "moved": format_bytes(own["moved"]),
        }  # fmt: skip
        if theirs is None:
            rows.append(shown | {"Accelerate": "uses the disk", "its moved": "", "ratio": ""})
            continue
        # What does not fit is no faster.
        ratio = f"{own['step_time'] / theirs['step_time']:.2f}" if theirs["fits"] else ""
        rows.append(
            shown
            | {
                "Accelerate": _shown(theirs),
                "its moved": format_bytes(theirs["moved"]),
                "ratio": ratio,
            }
        )
    return table_of(rows)


def _shown(each: dict[str, Any]) -> str:
    return format_seconds(each["step_time"]) + ("" if each["fits"] else ", does not fit")


def main() -> None:
    """Compares, and writes the results."""
    wanted = command_line("device_maps", "one model; results into build").parse_args()
    found = []
    for net in list(SOURCES)[: 1 if wanted.quick else None]:
        text = f"benchmarks.torch_pipelines.nets:{SOURCES[net]}&inference=true"
        graph = extract(text).graph
        options = dict(part.split("=") for part in SOURCES[net].partition("?")[2].split("&"))
        module, _ = NETS[net](**{key: int(value) for key, value in options.items()})
        weights = compute_module_sizes(module)[""]
        for limit, shares in LIMITS.items():
            limits = tuple(int(share * weights) for share in shares)
            problem = PlacementProblem(graph, box(limits), "none")
            theirs = accelerates(problem, module, limits)
            own = place(problem, "auto", SECONDS)
            found.append({
                "model": net, "limit": limit, "weights": weights, "limits": limits,
                "placeto": row(problem, own.devices),
                "accelerate": None if theirs is None else row(problem, theirs),
            })  # fmt: skip
    folder = results_folder(wanted.quick)
    save("device_maps", {"seconds": SECONDS, "rows": found}, markdown(found), folder)


if __name__ == "__main__":
    main()
