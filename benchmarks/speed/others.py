"""What the simulator is compared with: the plain Python reference, and Grappler's own simulator."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np

from placeto.envs import DevicePlacementEnv
from placeto.envs.observation import Observation
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.extraction.quiet import import_tensorflow
from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.support.bundle import FOLDERS
from placeto.support.files import read_bytes
from tests.reference import reference_schedule


def has_grappler() -> bool:
    """Whether TensorFlow, an extra, is installed."""
    return importlib.util.find_spec("tensorflow") is not None


@contextmanager
def grappler(problem: PlacementProblem, devices: Ints) -> Iterator[Callable[[], float]]:
    """A function that has Grappler work out the step time of a placement, in seconds.

    One call is one `Cluster.MeasureCosts`, from shapes to the costs of all ops. The GraphDef of the
    problem's graph, a bundled one, is read, placed on K80s and made an `Item` beforehand.
    """
    import_tensorflow()
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.device_properties_pb2 import DeviceProperties, NamedDevice
    from tensorflow.python.grappler.cluster import Cluster
    from tensorflow.python.grappler.item import Item

    from placeto.extraction.grappler import meta_graph

    run = problem.graph.meta["run"]
    graph_def = GraphDef.FromString(read_bytes(FOLDERS["graphs"] / run["graph_def"]))
    first = "/job:localhost/replica:0/task:0/device:GPU:"
    names = [f"{first}{number}" for number in range(problem.num_devices)]
    on = devices[problem.op_group].tolist()
    placed = {op: names[device] for op, device in zip(problem.graph.op_names, on, strict=True)}
    for node in graph_def.node:  # those that are no ops of the step initialize variables
        node.device = placed.get(node.name, node.device)
    k80 = next(kind for kind in DEVICE_KINDS if kind.name == "k80")
    properties = DeviceProperties(
        type="GPU",
        vendor="NVIDIA",
        environment={"architecture": "3.7"},
        num_cores=k80.multiprocessors,
        frequency=int(k80.clock_hertz / 1e6),  # MHz
        bandwidth=int(k80.bytes_per_second / 1e3),  # kB/s
        memory_size=int(problem.memory_limit[0]),
    )
    item = Item(meta_graph(graph_def, [*run["fetches"], *run["targets"]]))
    cluster = Cluster(devices=[NamedDevice(name=name, properties=properties) for name in names])
    try:
        yield lambda: float(cluster.MeasureCosts(item)[1])
    finally:
        cluster.Shutdown()


def reference_outcomes(problem: PlacementProblem, many: Ints) -> Outcomes:
    """What `simulate_many` returns, worked out by `tests/reference.py`."""
    schedules = []
    # The first start of an op of each group that takes time, 0 where there is none.
    starts = np.full((len(many), problem.num_groups), np.inf)
    for devices, first in zip(many, starts, strict=True):
        on = devices[problem.op_group]
        schedules.append(reference_schedule(problem.graph, problem.cluster, on.tolist()))
        works = problem.op_seconds[np.arange(len(on)), on] > 0
        np.minimum.at(first, problem.op_group[works], np.array(schedules[-1].start)[works])
    columns = {
        name: np.array([getattr(schedule, name) for schedule in schedules])
        for name in ("step_time", "peak_memory", "feasible")
    }
    return Outcomes(group_start=np.where(np.isfinite(starts), starts, 0), **columns)


class ReferenceEnv(gymnasium.Wrapper[Observation, int, Observation, int]):
    """`DevicePlacement-v0` that runs the reference at every few steps, else the simulator.

    It does so also where an action keeps the device, and the evaluator is asked nothing.
    """

    def __init__(self, every: int, *arguments: Any, **more: Any) -> None:
        self._placement = DevicePlacementEnv(*arguments, evaluator=self._evaluate, **more)
        super().__init__(self._placement)
        self._every, self._step, self._asked = every, -1, False
        self._devices: Ints = np.zeros((1, 0), dtype=np.int64)

    def reset(self, **options: Any) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; by the simulator."""
        self._step = -1
        return self.env.reset(**options)

    def step(self, action: int) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Gives the current group the device `action`."""
        self._step, self._asked = self._step + 1, False
        result = self.env.step(action)
        if not self._asked and self._step % self._every == 0:
            self._evaluate(self._placement.problem, self._devices)
        return result

    def _evaluate(self, problem: PlacementProblem, many: Ints) -> Outcomes:
        self._asked, self._devices = True, many
        if self._step >= 0 and self._step % self._every == 0:
            return reference_outcomes(problem, many)
        return simulate_many(problem, many)
