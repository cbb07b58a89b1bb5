"""The devices of this machine that PyTorch computes on, as a cluster."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from placeto.cluster import Channel, Cluster, Device
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.measurement.calibration.machine import machine
from placeto.placement.reserve import Reserve
from placeto.support.errors import PlacetoError

# Of what data sheets state, what a copy reaches; our assumption, as in the presets.
REACHED = 0.8
GPU_LATENCY, GPU_LAUNCH = 5e-6, 3e-6
RESERVE = Reserve(share=0.05)
READ = 256 << 20  # bytes that are read of a disk
# Bytes a second of a lane of PCI Express, by its generation; of a link of NVLink, one way, by the
# GPU's compute capability; of the loopback interface by gloo, and its latency: as preset local-2.
PCIE_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
NVLINK = {6: 20e9, 7: 25e9, 8: 25e9, 9: 25e9, 10: 50e9}
LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY = 2e9, 100e-6
# Bytes that cuBLAS has for scratch in each thread that computes, as PyTorch allots it, by the GPU's
# compute capability; a training step has two threads, of which one goes back.
WORKSPACE, WORKSPACE_FROM_9 = (2 * 4096 + 8 * 16) * 1024, 8 * 4096 * 1024
_NVLINKS = re.compile(r"NV(\d+)")


def detect_cluster(
    name: str,
    processes: int = 1,
    reserve: Reserve = RESERVE,
    disk: Path | None = None,
    cpu: bool = True,
) -> Cluster:
    """The GPUs and the CPU of this machine, or CPU processes where it has no GPU.

    Two GPUs are connected by NVLink, if `nvidia-smi topo` says so, each by as many links as there
    are; else by PCI Express, over the host's memory if neither can read the other's. Every
    bandwidth is a part of what a data sheet states; `placeto calibrate --torch` measures.

    Args:
        name: of the cluster.
        processes: how many processes share the CPU, where there is no GPU.
        reserve: what placements are to leave free of each memory: allocators have gaps. Of a GPU,
            beside `workspace_bytes`.
        disk: a folder on a disk that is to be a device, too, which holds weights in a device map.
            How fast it is read is measured.
        cpu: whether the CPU is a device beside GPUs.

    Raises:
        PlacetoError: fewer than one process, or several beside GPUs or a disk; a folder that cannot
            be written to; no CPU asked for, and no GPU there.
    """
    import torch

    if disk is not None:
        if processes > 1:
            raise PlacetoError("processes goes without a disk: device maps are of one process")
        return _with_disk(detect_cluster(name, 1, reserve, cpu=cpu), disk, reserve)
    if processes < 1:
        raise PlacetoError(f"processes is {processes}, expected a number from 1")
    here = machine()
    host = f"{here['processor']}, {here['cores']} cores"
    if not torch.cuda.is_available():
        if not cpu:
            raise PlacetoError("without the CPU there is no device: PyTorch finds no GPU here")
        memory = reserve.left(_host_memory() // processes)
        names = [f"rank{number}" for number in range(processes)] if processes > 1 else ["cpu"]
        devices = [Device(each, "cpu", memory, torch="cpu") for each in names]
        loopback = [
            Channel(f"{a}-to-{b}", (a,), (b,), LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY)
            for a, b in permutations(names, 2)
        ]
        source = f"Found on {platform.node()} by placeto detect: {host}, no GPU. {_kept(reserve)}"
        if loopback:
            source += " 2 GB/s and 100 us between processes are assumed."
        return Cluster(name, tuple(devices), tuple(loopback), source)
    if processes > 1:
        raise PlacetoError("processes goes with a machine without a GPU: each GPU has its own")
    return _with_gpus(name, host, reserve, cpu)


def workspace_bytes(major: int) -> int:
    """What cuBLAS keeps of a GPU in a training step, by the major number of its capability."""
    return 2 * (WORKSPACE if major < 9 else WORKSPACE_FROM_9)


def _kept(reserve: Reserve) -> str:
    return f"{reserve} of each memory are left free."


def _with_gpus(name: str, host: str, reserve: Reserve, cpu: bool) -> Cluster:
    import torch

    count = torch.cuda.device_count()
    found = [torch.cuda.get_device_properties(number) for number in range(count)]
    names = [f"cuda:{number}" for number in range(count)]
    devices = [
        Device(
            each,
            kind_of(gpu.name),
            reserve.left(gpu.total_memory - workspace_bytes(gpu.major)),
            GPU_LAUNCH,
        )
        for each, gpu in zip(names, found, strict=True)
    ]
    if cpu:
        devices.append(Device("cpu", "cpu", reserve.left(_host_memory())))
    bus = REACHED * _pcie_bandwidth()
    links, channels, said = _nvlinks(count), [], []
    for a, b in permutations(range(count), 2):
        bandwidth = REACHED * links[a][b] * NVLINK.get(found[a].major, 25e9)
        way = f"{links[a][b]} links of NVLink"
        if not bandwidth:
            direct = torch.cuda.can_device_access_peer(a, b)
            bandwidth, way = bus if direct else bus / 2, "PCI Express"
            way += "" if direct else " over the host's memory"
        said.append(way)
        ends = (names[a],), (names[b],)
        channels.append(Channel(f"{names[a]}-to-{names[b]}", *ends, bandwidth, GPU_LATENCY))
    for each in names if cpu else ():
        channels.append(Channel(f"{each}-to-cpu", (each,), ("cpu",), bus, GPU_LATENCY))
        channels.append(Channel(f"cpu-to-{each}", ("cpu",), (each,), bus, GPU_LATENCY))
    ways = f", connected by {' and '.join(dict.fromkeys(said))}" if said else ""
    gpus = " and ".join(
        f"{sum(gpu.name == each for gpu in found)} x {each}"
        for each in dict.fromkeys(gpu.name for gpu in found)
    )
    source = (
        f"Found on {platform.node()} by placeto detect: {gpus}{ways}; {host}. Bandwidths are "
        f"{REACHED:.0%} of the data sheets'; {1e6 * GPU_LATENCY:.0f} us of latency and "
        f"{1e6 * GPU_LAUNCH:.0f} us an op are assumed. {_kept(reserve)} So is what cuBLAS has for "
        "scratch."
    )
    return Cluster(name, tuple(devices), tuple(channels), source)


def _with_disk(cluster: Cluster, folder: Path, reserve: Reserve) -> Cluster:
    """The cluster with a device more. Nothing is computed there, hence a kind that no graph has."""
    try:
        bandwidth = read_bandwidth(folder)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise PlacetoError(f"{folder}: cannot be written and read: {error.strerror}") from error
    names = [device.name for device in cluster.devices]
    ways = [pair for each in names for pair in ((each, "disk"), ("disk", each))]
    return replace(
        cluster,
        devices=(*cluster.devices, Device("disk", "disk", reserve.left(free))),
        channels=(
            *cluster.channels,
            *(Channel(f"{a}-to-{b}", (a,), (b,), bandwidth) for a, b in ways),
        ),
        source=f"{cluster.source} Of {folder} {READ >> 20} MiB that were not cached were read at "
        f"{bandwidth / 1e9:.2g} GB/s.",
    )


def read_bandwidth(folder: Path) -> float:
    """Bytes a second of reading a file that the system has not in memory.

    Raises:
        OSError: no file can be made there.
    """
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        block = os.urandom(1 << 20)
        for _ in range(READ >> 20):
            file.write(block)
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        begin = time.perf_counter()
        while file.read(1 << 20):
            pass
        return READ / (time.perf_counter() - begin)


def kind_of(product: str) -> str:
    """The device kind of a GPU by its name; of one without figures here, a name of its own."""
    words = re.split(r"[^a-z0-9]+", product.lower())
    for kind in DEVICE_KINDS:
        if kind.is_gpu and kind.name in words:
            return kind.name
    return "-".join(word for word in words if word not in ("nvidia", "tesla", ""))


def _nvlinks(count: int) -> list[list[int]]:
    """(count, count) how many links of NVLink lead from one GPU to another; of a switch, all."""
    return read_topology(_nvidia_smi("topo", "-m"), count)


def read_topology(text: str, count: int) -> list[list[int]]:
    """The links in what `nvidia-smi topo -m` prints: a row and a column a GPU, `NV12` for 12."""
    links = [[0] * count for _ in range(count)]
    for line in text.splitlines():
        row, *cells = re.sub(r"\x1b\[[0-9;]*m", "", line).split() or [""]
        number = row.removeprefix("GPU")
        if row.startswith("GPU") and number.isdigit() and int(number) < count and cells:
            if cells[0].startswith("GPU"):
                continue  # the head of the table
            for other, cell in enumerate(cells[:count]):
                match = _NVLINKS.fullmatch(cell)
                links[int(number)][other] = int(match[1]) if match else 0
    return links


def _pcie_bandwidth() -> float:
    """Bytes a second of the first GPU's way to the host; if not known, of 16 lanes of PCIe 3.0."""
    query = "--query-gpu=pcie.link.gen.max,pcie.link.width.max"
    cells = _nvidia_smi(query, "--format=csv,noheader").splitlines()[:1]
    numbers = re.findall(r"\d+", cells[0]) if cells else []
    generation, lanes = map(int, numbers) if len(numbers) == 2 else (3, 16)
    return PCIE_LANE.get(generation, PCIE_LANE[3]) * lanes


def _nvidia_smi(*arguments: str) -> str:
    """What it prints; nothing where it is not installed or fails."""
    try:
        found = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout


def _host_memory() -> int:
    """Bytes that this process may use: the machine's, or its control group's if that has less."""
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if os.access(limit, os.R_OK) else "max"
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(total, int(text)) if text.isdigit() else total
