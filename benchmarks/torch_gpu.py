"""Steps of PyTorch's on a GPU beside what is estimated of them: `python -m benchmarks.torch_gpu`.

Six models, larger than those of `benchmarks.torch_pipelines`. Each op's kernels, by
`torch.profiler`, beside what the data sheet allows; the step that PyTorch runs beside both; and
what it allocates at most beside what is simulated. It needs a GPU, and a few minutes. Writes
`results/torch_gpu.json` and `.md`, or into `--folder`.
"""

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.output import RESULTS, command_line, save, table_of
from placeto.cluster import Cluster, Device
from placeto.extraction.pytorch.capture import loss_targets, total_loss
from placeto.extraction.pytorch.inputs import real_call
from placeto.extraction.pytorch.source import graph_of, trace_module
from placeto.extraction.source import parse_source
from placeto.measurement.calibration.machine import machine
from placeto.measurement.pytorch.calibrate import calibrate_torch
from placeto.measurement.pytorch.detect import detect_cluster, kind_of, workspace_bytes
from placeto.measurement.pytorch.op_times import OPTIMIZERS, time_ops
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.files import read_json

LOSS = "loss=crossentropy"
SOURCES = {
    "gpt": f"gpt?batch=16&words=32000&length=512&width=1024&layers=12&{LOSS}",
    "resnet50": f"resnet50?batch=64&side=224&{LOSS}",
    "encoder_decoder": f"encoder_decoder?batch=32&length=512&width=1024&{LOSS}",
    "vgg16": f"vgg16?batch=64&side=224&{LOSS}",
    "widening_mlp": f"widening_mlp?batch=16384&{LOSS}",
    "experts": f"experts?batch=16384&{LOSS}",
}
NETS = "benchmarks.torch_pipelines.nets:"
VARIANTS = ("&optimizer=momentum", "&optimizer=adam", "&microbatches=8")
LEAST_SHARE = 0.01  # of all kernels, of the op types that are shown


def costs(text: str, device: str) -> dict[str, Any]:
    """Seconds of a source's ops on a device and by the roofline, and of its step."""
    traced = trace_module(parse_source(text), lambda line: None)
    graph, _ = graph_of(traced)
    (found,) = time_ops([traced], device)
    kind = kind_of(torch.cuda.get_device_name(device))
    if kind not in graph.op_seconds:
        raise SystemExit(f"benchmarks.torch_gpu: no data sheet of {kind!r} is known here")
    roofline = graph.op_seconds[kind]
    by_type: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for op, measured, least in zip(traced.listed.ops, found.seconds, roofline, strict=True):
        if measured > 0 or least > 0:
            sums = by_type[op.type]
            sums[0] += float(measured)
            sums[1] += float(least)
            sums[2] += 1
    return {
        "kind": kind, "types": dict(by_type), "overhead": found.op_overhead,
        "step": found.step_seconds, "passes": found.passes.tolist(),
        "roofline": float(roofline.sum()), "not measured": int((~found.measured).sum()),
        "kernels": float(found.seconds.sum()), "ops": int(np.count_nonzero(found.seconds)),
    }  # fmt: skip


def simulated_memory(text: str, major: int) -> int:
    """Bytes that a step needs at most on one device, simulated, and what its libraries keep."""
    graph, _ = graph_of(trace_module(parse_source(text), lambda line: None))
    cluster = Cluster("one", (Device("gpu", "h100", 2**50),))
    # As PyTorch does, one microbatch after the other, forward and backward.
    order = "fifo" if graph.num_microbatches == 1 else "1f1b"
    problem = PlacementProblem(graph, cluster, "none", order=order)
    peak = simulate(problem, np.zeros(problem.num_groups, dtype=np.int64)).peak_memory[0]
    return int(peak) + workspace_bytes(major)


def allocated(text: str, device: str) -> int:
    """Bytes that PyTorch's allocator has given away at most, in the second of two steps."""
    torch.cuda.empty_cache()
    traced = trace_module(parse_source(text), lambda line: None)
    options, count = traced.options, traced.call.microbatches
    call = real_call(traced.make, options["inputs"], count, traced.source.text)
    module = call.module.to(device)
    args, kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.to(device), (call.args, call.kwargs)
    )
    optimizer = OPTIMIZERS[options["optimizer"]](list(module.parameters()))
    targets: list[Any] = []
    for step in range(2):
        if step:
            torch.cuda.reset_peak_memory_stats(device)
        optimizer.zero_grad(set_to_none=True)
        for _ in range(count):
            outputs = module(*args, **kwargs)
            targets = targets or loss_targets(outputs, options["loss"], traced.source.text)
            loss = total_loss(outputs, targets) / count
            del outputs
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated(device))


def markdown(found: dict[str, Any]) -> str:
    """Steps, op types, memory: a table each."""
    steps, sums = [], defaultdict(lambda: [0.0, 0.0, 0.0])
    for net, row in found.items():
        each = row["costs"]
        whole, kernels = np.median(each["passes"], axis=0)
        steps.append({
            "model": f"`{net}`", "ops": str(each["ops"]), "step": f"{1e3 * each['step']:.2f} ms",
            "forward, backward": f"{1e3 * whole:.2f} ms", "kernels": f"{1e3 * kernels:.2f} ms",
            "roofline": f"{1e3 * each['roofline']:.2f} ms",
            "roofline over step": f"{each['roofline'] / each['step']:.2f}",
        })  # fmt: skip
        for kind, (measured, least, count) in each["types"].items():
            for place, value in enumerate((measured, least, count)):
                sums[kind][place] += value
    total = sum(measured for measured, _, _ in sums.values())
    kinds = [
        {
            "op type": f"`{kind}`", "ops": f"{count:.0f}", "of all": f"{measured / total:.1%}",
            "measured": f"{1e3 * measured:.2f} ms", "roofline": f"{1e3 * least:.2f} ms",
            "roofline over measured": f"{least / measured:.2f}",
        }
        for kind, (measured, least, count) in sorted(sums.items(), key=lambda each: -each[1][0])
        if measured > LEAST_SHARE * total
    ]  # fmt: skip
    memories = []
    for net, row in found.items():
        cells = {"model": f"`{net}`"}
        for variant, each in row["memory"].items():
            off = each["simulated"] / each["allocated"] - 1
            cells[variant.removeprefix("&")] = f"{each['allocated'] / 2**20:.0f} MiB, {off:+.1%}"
        memories.append(cells)
    return f"{table_of(steps)}\n{table_of(kinds)}\n{table_of(memories)}"


def measured(quick: bool) -> dict[str, Any]:
    """What needs the GPU."""
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.torch_gpu: PyTorch sees no GPU; --again needs none")
    found: dict[str, Any] = {}
    box = detect_cluster("gpu-box")
    for net in list(SOURCES)[: 2 if quick else None]:
        print(net, file=sys.stderr, flush=True)
        found[net] = {
            "costs": costs(NETS + SOURCES[net], "cuda:0"),
            "memory": {
                variant: {"allocated": allocated(NETS + SOURCES[net] + variant, "cuda:0")}
                for variant in VARIANTS
            },
        }
    traced = trace_module(parse_source(NETS + SOURCES[net] + VARIANTS[2]), lambda line: None)
    calibration = calibrate_torch(
        [traced], box, lambda line: print(line, file=sys.stderr), "cuda:0"
    )
    channels = [
        [each.name, before.bandwidth, each.bandwidth, each.latency_seconds]
        for each, before in zip(calibration.cluster.channels, box.channels, strict=True)
    ]
    return {
        "machine": machine(), "gpu": torch.cuda.get_device_name(0), "torch": torch.__version__,
        "major": torch.cuda.get_device_properties(0).major,
        "box": box.source, "channels": channels, "models": found,
    }  # fmt: skip


def main() -> None:
    """Measures, simulates, and writes the results."""
    parser = command_line("torch_gpu", "two models alone")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="for the results")
    again = "simulate the memory again, beside what was measured before; needs no GPU"
    parser.add_argument("--again", action="store_true", help=again)
    wanted = parser.parse_args()
    if wanted.again:
        document = {"major": 9} | read_json(wanted.folder / "torch_gpu.json")  # the first: an H100
    else:
        document = measured(wanted.quick)
    for net, row in document["models"].items():
        for variant, each in row["memory"].items():
            each["simulated"] = simulated_memory(NETS + SOURCES[net] + variant, document["major"])
    save("torch_gpu", document, markdown(document["models"]), wanted.folder)


if __name__ == "__main__":
    main()
