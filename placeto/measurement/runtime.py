"""Measuring placements one after another, whatever becomes of each."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np

from placeto.cluster import Cluster
from placeto.measurement.child import Child, ChildError, ChildTimeout, wait_for_any
from placeto.measurement.measured import Effort, Measurement
from placeto.measurement.runnable import Runnable
from placeto.measurement.tasks import RuntimeSettings, Task, tasks_of
from placeto.placement.placed_graph import UNORDERED
from placeto.problem import PlacementProblem
from placeto.simulation import control_edges, simulate
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

_START_SECONDS = 180.0
_LOOK_SECONDS = 0.25
# How long after an error a worker's death may come to light that caused it.
_GRACE_SECONDS = 1.0
_ATTEMPTS = 3
_DRIVER = "the driver"
_DRIVER_MODULE = "placeto.measurement.driver"
_WORKER_MODULE = "placeto.measurement.worker"
_WAITING = Task("", 0, None, num_cores=1, num_cpu_devices=1, memory_bytes=None)


# What a core was seen to do is the machine's, whichever runtime saw it; see `Pace`.
_least: dict[int, float] = {}


class Runtime:
    """The processes that run a cluster's devices, and one, the driver, that holds the session.

    They are started when they are first needed, and again after a placement has brought one down,
    hung, run out of memory, or was interrupted. Nothing of one placement is left for the next. Use
    it in a `with` block: at its end all processes are gone; so they are if this process ends in any
    other way.

    Args:
        cluster: its `launch` says which processes there are.
        settings: how they run; the defaults are what makes a step run as simulated.

    Raises:
        PlacetoError: a device without a TensorFlow name, or more cores asked for than there are.
    """

    def __init__(self, cluster: Cluster, settings: RuntimeSettings | None = None) -> None:
        self.cluster = cluster
        self._settings = settings or RuntimeSettings()
        self._devices = [str(device) for device in cluster.tensorflow_devices()]
        local = cluster.launch is None or cluster.launch.is_local
        self._tasks = tasks_of(cluster) if local else ()
        self._children: dict[str, Child] = {}
        self._busy = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def process_ids(self) -> dict[str, int]:
        """The processes that run, by name; those of workers by job and number."""
        return {name: child.process.pid for name, child in self._children.items()}

    def close(self) -> None:
        """Ends all processes."""
        for child in self._children.values():
            child.close()
        self._children = {}
        self._busy = False

    def measure(
        self,
        problem: PlacementProblem,
        devices: Ints,
        runnable: Runnable,
        effort: Effort | None = None,
        *,
        traces: int = 0,
    ) -> Measurement:
        """Runs a placement.

        Args:
            problem: a graph on this runtime's cluster.
            devices: (num_groups,) device of each group.
            runnable: the graph's GraphDef.
            effort: how many steps.
            traces: how many further steps to trace.

        Returns:
            The time of its steps, or the reason why it cannot be run.

        Raises:
            PlacetoError: the processes cannot be started, or the GraphDef is of another graph.
        """
        devices = np.asarray(devices)[None]
        return self.compare(problem, devices, runnable, effort, traces=traces)[0]

    def compare(
        self,
        problem: PlacementProblem,
        many: Ints,
        runnable: Runnable,
        effort: Effort | None = None,
        *,
        traces: int = 0,
    ) -> list[Measurement]:
        """Runs several placements of a graph in turn, see `in_turn`.

        Args:
            problem: a graph on this runtime's cluster.
            many: (n, num_groups) devices of each group.
            runnable: the graph's GraphDef.
            effort: how many steps of each.
            traces: how many further steps of the last placement to trace.
        """
        placements = [(problem, devices, runnable) for devices in np.asarray(many)]
        return self.in_turn(placements, effort, traces=traces)

    def in_turn(
        self,
        placed: Sequence[tuple[PlacementProblem, Ints, Runnable]],
        effort: Effort | None = None,
        *,
        traces: int = 0,
    ) -> list[Measurement]:
        """Runs several placements in turn, a step of each, again and again.

        Whatever slows the machine down for longer than a few steps slows all of them. Turns count
        during which all cores were about as fast as each other; `paces` tell how much they
        differed. Graphs may differ; placements of one share its variables.

        Args:
            placed: of each the problem, a graph on this runtime's cluster; (num_groups,) devices;
                and the graph's GraphDef.
            effort: how many steps of each.
            traces: how many further steps of the last placement to trace.

        Returns:
            A measurement each, the samples of a turn side by side. If one cannot be run, all have
            the reason why.
        """
        found = self._run(placed, effort or Effort(), traces, at_once=False)
        return [found] * len(placed) if isinstance(found, Measurement) else found

    def at_once(
        self,
        placed: Sequence[tuple[PlacementProblem, Ints, Runnable]],
        effort: Effort,
        traces: int = 0,
    ) -> tuple[list[Measurement], list[Measurement]]:
        """Runs several placements, on devices of their own, in turn and all at once.

        A step of each in turn, then one of each while all others run theirs, again and again: how
        much devices slow each other down, as cores do that share a memory.

        Args:
            placed: as in `in_turn`.
            effort: how many steps of each, in turn and at once.
            traces: how many further steps of each to trace, at once.

        Returns:
            A measurement each of the steps in turn, and of those at once, their samples side by
            side; the latter have the traces. If one cannot be run, all have the reason why.
        """
        found = self._run(placed, effort, traces, at_once=True)
        if isinstance(found, Measurement):
            found = [found] * (2 * len(placed))
        return found[: len(placed)], found[len(placed) :]

    def _run(
        self,
        placed: Sequence[tuple[PlacementProblem, Ints, Runnable]],
        effort: Effort,
        traces: int,
        at_once: bool,
    ) -> list[Measurement] | Measurement:
        """What the driver said of each placement; or why one cannot be run."""
        placements, used = [], set()
        for problem, devices, runnable in placed:
            names = problem.graph.op_names
            op_devices = devices[problem.op_group].tolist()
            used.update(op_devices)
            control = self.control(problem, devices).tolist()
            placements.append({
                "ops": dict(zip(names, op_devices, strict=True)),
                "control": [(names[before], names[after]) for before, after in control],
                "path": str(runnable.path),
                "sha256": runnable.sha256,
                "roots": [*runnable.fetches, *runnable.targets],
                "initializer": runnable.initializer,
            })  # fmt: skip
        request = {
            "devices": self._devices,
            "placements": placements,
            "effort": asdict(effort),
            "traces": traces,
            "at_once": at_once,
            "cores": self._cores(used),
            "least": _least,
        }
        try:
            self._start()
            return self._answer(request, effort.deadline_seconds)
        finally:
            if self._busy or not self._all_alive():
                self.close()

    def control(self, problem: PlacementProblem, devices: Ints) -> Ints:
        """(n, 2) ops that must end before others begin, for the order that the settings ask for."""
        if self._settings.order == UNORDERED:
            return np.empty((0, 2), dtype=np.int64)
        return control_edges(problem, simulate(problem, devices))

    def _cores(self, used: Collection[int]) -> list[int]:
        """The cores that these devices are pinned to."""
        names = self.cluster.tensorflow_devices()
        wanted = {(names[device].job, names[device].task) for device in used}
        tasks = [task for task in self._tasks if (task.job, task.number) in wanted]
        return [core for task in tasks for core in task.cores or ()]

    def _answer(self, request: dict[str, Any], seconds: float) -> list[Measurement] | Measurement:
        """Of each placement what its runs said, or why one failed."""
        driver = self._children[_DRIVER]
        until = time.monotonic() + seconds
        stage = "building its session"
        self._busy = True
        try:
            driver.send(request)
            while (answer := self._next(driver, until)) is not None:
                if "stage" in answer:
                    stage = answer["stage"]
                    continue
                traces = [driver.receive_bytes() for _ in range(answer.get("traces", 0))]
                self._busy = False
                if "refused" in answer:
                    raise PlacetoError(answer["refused"])
                if "failed" in answer:
                    workers = [each for each in self._children.values() if each is not driver]
                    dead = wait_for_any(workers, _GRACE_SECONDS)
                    reason = answer["failed"] if dead is None else dead.exit_reason()
                    if answer["exhausted"]:
                        # What ran short of memory may have lost more than the op did: workers
                        # were seen to hang in a later run that needs little.
                        self.close()
                    return Measurement(reason=f"{reason} (it was {stage})", died=dead is not None)
                _least.update({int(core): took for core, took in answer["least"].items()})
                columns, paces = list(zip(*answer["samples"], strict=True)), tuple(answer["paces"])
                # The last ones were traced, as often each.
                each = max(request["traces"], 1)
                shares = [tuple(traces[at : at + each]) for at in range(0, len(traces), each)]
                shares = [()] * (len(columns) - len(shares)) + shares
                return [
                    Measurement(samples, paces=paces, traces=share)
                    for samples, share in zip(columns, shares, strict=True)
                ]
        except ChildError as error:
            return Measurement(reason=f"{error} (it was {stage})", died=True)
        return Measurement(reason=f"not done within {seconds:g} s; it was {stage}")

    def _next(self, driver: Child, until: float) -> dict[str, Any] | None:
        """The driver's next answer; None if it does not come in time."""
        while not driver.poll(min(_LOOK_SECONDS, until - time.monotonic())):
            if dead := wait_for_any(self._children.values(), 0.0):
                raise ChildError(dead.exit_reason())
            if time.monotonic() >= until:
                return None
        return driver.receive(0.0)

    def _all_alive(self) -> bool:
        return bool(self._children) and all(child.alive for child in self._children.values())

    def _start(self) -> None:
        """Starts what is to run, unless all of it does."""
        if self._all_alive():
            return
        for attempts_left in reversed(range(_ATTEMPTS)):
            self.close()
            self._busy = True  # what is started in part, and then interrupted, is of no use
            try:
                self._start_all()
                self._busy = False
                return
            except ChildError as error:
                # A port can be taken between its choice and its use.
                if attempts_left == 0 or isinstance(error, ChildTimeout):
                    raise PlacetoError(
                        f"cluster {self.cluster.name!r}: cannot be started: {error}"
                    ) from error

    def _start_all(self) -> None:
        launch = self.cluster.launch
        if launch is None:
            driver = self._child(_DRIVER, _DRIVER_MODULE, self._tasks[0])
            target = ""
        else:
            # This driver only waits; the devices are the workers'.
            hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
            driver = self._child(_DRIVER, _DRIVER_MODULE, _WAITING, hidden)
            first = self._start_workers() if launch.is_local else launch.addresses[0][1][0]
            target = f"grpc://{first}"
        driver.send({"target": target})
        driver.receive(_START_SECONDS)

    def _child(
        self, name: str, module: str, task: Task, environment: Mapping[str, str] | None = None
    ) -> Child:
        told = asdict(task) | {"serving_threads": self._settings.serving_threads}
        kept = self._settings.environment(on_cpus=task.memory_bytes is not None)
        child = self._children[name] = Child(name, module, told, {**kept, **(environment or {})})
        return child

    def _start_workers(self) -> str:
        """Starts the workers and returns the address of the first."""
        workers = [self._child(task.name, _WORKER_MODULE, task) for task in self._tasks]
        cluster: dict[str, list[str]] = {}
        for task, worker in zip(self._tasks, workers, strict=True):
            port = worker.receive(_START_SECONDS)["port"]
            cluster.setdefault(task.job, []).append(f"127.0.0.1:{port}")
        for worker in workers:
            worker.send({"cluster": cluster})
        for worker in workers:
            answer = worker.receive(_START_SECONDS)
            if "error" in answer:
                raise ChildError(f"{worker.name} {answer['error']}")
        return cluster[self._tasks[0].job][0]
