"""Placements of PyTorch modules as maps from modules to devices."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

TorchDevice = int | str
STORES = ("cpu", "disk")  # as PyTorch and Accelerate call what holds weights beside GPUs

_TORCH = re.compile(r"cpu|disk|(cuda|xpu|mps|hpu|npu)(:\d+)?")
_LOCAL = re.compile(r"(?:.*/)?device:(GPU|CPU):(\d+)", re.I)


def device_map(
    problem: PlacementProblem, devices: Ints, names: Mapping[str, TorchDevice] | None = None
) -> dict[str, TorchDevice]:
    """The device of each module, as Hugging Face Accelerate's `dispatch_model` takes it.

    A module that is on one device stands for all that is inside of it; of any other the modules
    inside of it are listed. What a module computes between those inside of it runs where its
    inputs are. Parameters of the model itself, outside of all modules inside of it, are listed by
    their own names; `dispatch_model` puts them on its `main_device`.

    Args:
        problem: with a graph that `placeto extract` made of a PyTorch module.
        devices: (num_groups,) device of each group.
        names: PyTorch's names of the cluster's devices, such as `{"gpu0": "cuda:1"}`. Those left
            out are called as the cluster says: by their `torch` names, by their own where these are
            PyTorch's (`cuda:0`, `cpu`), else by a GPU's number or `cpu`, as in `tensorflow` names.

    Returns:
        Path of a module -> device; "" is the whole model.

    Raises:
        PlacetoError: the graph is of no PyTorch module, a device has no name, two have the same,
            or a module is split between devices that must be whole.
    """
    meta = modules_meta(problem.graph)
    known = torch_devices(problem.cluster, names)
    root = _tree(problem, meta, devices[problem.op_group].tolist())
    found = dict(_mapped(root, meta.get("together") == "modules", problem))
    named = _named(problem.cluster, dict.fromkeys(found.values()), known)
    return {path: named[device] for path, device in found.items()}


def check_device_map(graph: ComputationGraph, cluster: Cluster) -> None:
    """Refuses, before a placement is searched for, what has no map.

    Raises:
        PlacetoError: the graph is of no PyTorch module, a device has no name, or two have the same.
    """
    modules_meta(graph)
    _named(cluster, range(cluster.num_devices), torch_devices(cluster))


def _named(
    cluster: Cluster, devices: Iterable[int], known: Mapping[str, TorchDevice]
) -> dict[int, TorchDevice]:
    """PyTorch's names of devices, of which each must have one, and another than the others."""
    named: dict[int, TorchDevice] = {}
    for number in devices:
        name = cluster.devices[number].name
        if name not in known:
            raise PlacetoError(
                f"device {name!r} has no name in PyTorch; call it so in the cluster file (cuda:0, "
                "cpu), give it a `torch` name, or a `tensorflow` name such as /device:GPU:0, or "
                f"call device_map(…, names={{{name!r}: 'cuda:0'}})"
            )
        named[number] = known[name]
    names = list(named.values())
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise PlacetoError(
            f"cluster {cluster.name!r}: several devices have one name in PyTorch "
            f"({', '.join(twice)}); give each its own, such as gpu0=cuda:0"
        )
    return named


def torch_devices(
    cluster: Cluster, names: Mapping[str, TorchDevice] | None = None
) -> dict[str, TorchDevice]:
    """PyTorch's names of a cluster's devices, of those that have one.

    Those given, device -> name, come first (`PlacetoError` if there is no such device), then what
    the cluster says as `torch`. Devices with a name of PyTorch's keep it; other GPUs are numbered
    as in their `tensorflow` names.
    """
    found: dict[str, TorchDevice] = {}
    for device in cluster.devices:
        local = _LOCAL.fullmatch(device.tensorflow or "")
        if device.torch is not None:
            found[device.name] = device.torch
        elif _TORCH.fullmatch(device.name):
            found[device.name] = device.name
        elif local:
            found[device.name] = int(local[2]) if local[1].upper() == "GPU" else "cpu"
    for name in names or {}:
        cluster.device_index(name)
    return found | dict(names or {})


@dataclass
class _Module:
    """A module: the devices of what it computes, of what it holds, and of what is inside of it."""

    path: str
    ops: set[int] = field(default_factory=set)
    states: dict[str, int] = field(default_factory=dict)
    children: dict[str, "_Module"] = field(default_factory=dict)

    def all_devices(self) -> set[int]:
        inside = (child.all_devices() for child in self.children.values())
        return self.ops.union(self.states.values(), *inside)

    def find(self, path: str) -> "_Module":
        found = self
        for name in path.split(".") if path else ():
            below = f"{found.path}.{name}" if found.path else name
            found = found.children.setdefault(name, _Module(below))
        return found


def modules_meta(graph: ComputationGraph) -> Mapping[str, Any]:
    """What a graph's meta says of modules.

    `modules` has the path of each op's module, None for none; `states` the names of the parameters
    or buffers that an op is, for ops that are any; `together` is "modules" where the ops of a whole
    module share a device in every placement.
    """
    meta = graph.meta.get("pytorch")
    if not isinstance(meta, Mapping):
        raise PlacetoError(
            f"graph {graph.name!r}: does not say which modules its ops are of; make it with "
            "placeto extract of a PyTorch module"
        )
    paths, states = meta.get("modules"), meta.get("states")
    if not isinstance(paths, list) or len(paths) != graph.num_ops or not isinstance(states, dict):
        raise PlacetoError(f"graph {graph.name!r}: meta.pytorch is not of its {graph.num_ops} ops")
    return meta


def _tree(problem: PlacementProblem, meta: Mapping[str, Any], devices: Sequence[int]) -> _Module:
    root = _Module("")
    for op, path, device in zip(problem.graph.op_names, meta["modules"], devices, strict=True):
        names = meta["states"].get(op, ())
        for name in names:
            owner, _, last = name.rpartition(".")
            root.find(owner).states[last] = device
        if path is not None and not names:
            root.find(path).ops.add(device)
    return root


def _mapped(module: _Module, whole: bool, problem: PlacementProblem) -> Iterator[tuple[str, int]]:
    devices = module.all_devices()
    if len(devices) == 1:
        yield module.path, devices.pop()
        return
    held = set(module.states.values())
    # What computes between modules is told where to run by nobody: whole modules alone see to it.
    computed = module.ops if not (whole and module.children) else set()
    if computed or (module.path and held) or len(held) > 1:
        names = ", ".join(sorted(problem.cluster.devices[device].name for device in devices))
        of_its_own = "parameters of its own" if held else "ops of its own"
        raise PlacetoError(
            f"module {module.path!r} of graph {problem.graph.name!r} is split between {names}, "
            f"but has {of_its_own} and must be whole; extract the graph with ?together=modules"
        )
    yield from module.states.items()
    for child in module.children.values():
        if child.all_devices():
            yield from _mapped(child, whole, problem)
