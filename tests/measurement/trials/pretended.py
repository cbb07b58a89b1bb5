"""Workers, pretended: true costs that differ from a problem's, and a machine that is disturbed."""

from dataclasses import replace

import numpy as np

from placeto import PlacementProblem, step_times
from placeto.measurement import Measurement
from placeto.simulation.scaled import scaled_problem


class Pretended:
    """Runs placements in a simulator with other costs; `runs` are the devices of each run.

    Op times are off by their type and by themselves, transfers by their bytes and their ends. A run
    is slowed with a chance of 0.3, for all steps of all its placements, by up to `disturbed`; a
    step with one of 0.1. The machine drifts by up to `drift` in 20 runs. `runs` are of the last
    placement of each. Traces tell kernels that take nine tenths
    of their op's time. Of the runs in `ends` those measurements come back, or are raised.
    """

    def __init__(self, problem, seed=0, *, disturbed=0.4, drift=0.05, ends=None):
        self.cluster = problem.cluster
        rng = np.random.default_rng(seed)
        types, type_of = np.unique(np.array(problem.graph.op_types), return_inverse=True)
        self.factors = rng.lognormal(0, 0.4, len(types))[type_of] * rng.lognormal(
            0, 0.15, len(type_of)
        )
        self.true: PlacementProblem = scaled_problem(
            problem,
            bandwidth=rng.uniform(0.4, 1.5),
            latency=rng.uniform(0.5, 3),
            ends=rng.uniform(1, 2),
            op_seconds={kind: self.factors for kind in problem.cluster.kinds},
        )
        self.rng, self.disturbed, self.slope = rng, disturbed, rng.uniform(-drift, drift)
        self.ends, self.runs = dict(ends or {}), []

    def step_time(self, devices):
        return float(step_times(self.true, np.asarray(devices)[None])[0])

    def compare(self, problem, many, runnable, effort=None, *, traces=0):
        devices = np.array(many[-1])
        self.runs.append(devices)
        end = self.ends.get(len(self.runs))
        if isinstance(end, BaseException):
            raise end
        if end is not None:
            return [end] * len(many)
        rng, num_ops = self.rng, problem.graph.num_ops
        slowed = 1 + self.slope * len(self.runs) / 20
        if rng.random() < 0.3:
            slowed *= 1 + rng.uniform(0, self.disturbed)
        shape = len(many), 9
        samples = slowed * step_times(self.true, many)[:, None] * (1 + rng.exponential(0.01, shape))
        samples *= np.where(rng.random(shape) < 0.1, 1 + rng.uniform(0, self.disturbed, shape), 1)
        op_device = devices[problem.op_group]
        kernels = 0.9 * slowed * self.true.op_seconds[np.arange(num_ops), op_device]
        *others, last = [Measurement(tuple(row)) for row in samples]
        seen = (traced(problem, op_device, kernels),) * traces
        return [*others, replace(last, traces=seen)]


def traced(problem, op_device, kernels):
    """A serialized RunMetadata of one run of each op, seconds each."""
    from tensorflow.core.protobuf.config_pb2 import RunMetadata

    metadata = RunMetadata()
    names = problem.cluster.tensorflow_devices()
    devices = [metadata.step_stats.dev_stats.add(device=str(name)) for name in names]
    for op, (name, device) in enumerate(zip(problem.graph.op_names, op_device, strict=True)):
        node = devices[device].node_stats.add(node_name=name, timeline_label=f"{name} = Op()")
        node.all_start_nanos = 10**15
        node.op_end_rel_nanos = node.all_end_rel_nanos = round(kernels[op] * 1e9)
    return metadata.SerializeToString()
