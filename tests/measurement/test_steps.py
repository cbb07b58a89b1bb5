"""Which steps are run and which count, by a clock that is pretended."""

import itertools
import math
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from tensorflow.core.framework.step_stats_pb2 import NodeExecStats
from tensorflow.core.protobuf.config_pb2 import RunMetadata

from placeto.measurement import Effort, driver

WARM_UP = 3
CHECKED = 1  # step, traced before all others, that all results are of


@pytest.fixture
def run(monkeypatch):
    """Runs steps that last as told, the last of these times over and over.

    Returns the samples, how often the step ran, and how many traces were made; `stages` has what
    was said to be done.
    """
    import tensorflow as tf

    ran, stages = [], []

    def step():
        ran.append(None)
        return np.int64(0)

    with tf.Graph().as_default() as graph:
        tf.numpy_function(step, [], tf.int64, stateful=True, name="step")
        tf.no_op("initializer")

    def run(seconds, effort, traces=0):
        ran.clear()
        stages.clear()
        ends = itertools.chain(seconds, itertools.repeat(seconds[-1]))
        # Each step looks at the clock twice.
        clock = (time for each in ends for time in (0.0, each))
        monkeypatch.setattr(driver, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
        placement = {"control": [], "roots": ["step:0"], "initializer": "initializer"}
        request = {"effort": asdict(effort), "traces": traces, "at_once": False}
        request["placements"] = [placement]
        config = tf.compat.v1.ConfigProto()
        samples, paces, made = driver.run_steps(
            [graph.as_graph_def()], request, "", config, list, stages.append
        )
        assert len(paces) == len(samples)
        return [seconds for (seconds,) in samples], len(ran), len(made)

    run.stages = stages
    return run


def test_the_first_steps_do_not_count_and_those_traced_come_last(run):
    times = [4.0, 2.0, 3.0, 9.0]
    assert run(times, Effort(WARM_UP, 4), traces=2) == (times, CHECKED + WARM_UP + 4 + 2, 2)
    assert run.stages == [
        "setting the variables", "running its first steps", "running its steps", "tracing steps",
    ]  # fmt: skip


ONE_OFF = [1.0, 1.0, 1.0, 1.0, 1.0, 1.3, 1.0]
TWO_SPEEDS = [1.0, 1.3] * 50


@pytest.mark.parametrize(
    ("seconds", "steps_asked", "max_steps", "precision", "count"),
    [
        # Less than six steps cannot give 95%.
        ([1.0], 2, 50, 0.1, 6),
        ([1.0], 7, 50, 0.1, 7),
        # Up to eight steps the interval is their whole range, of nine the longest is out.
        (ONE_OFF, 2, 50, 0.2, 9),
        (ONE_OFF, 2, 50, 0.3001, 6),
        # The median, 1.15 s or either speed, stays as uncertain as it was.
        (TWO_SPEEDS, 2, 20, 0.1, 20),
        (TWO_SPEEDS, 2, 20, math.inf, 2),
        (TWO_SPEEDS, 2, 4, 0.1, 4),
        (TWO_SPEEDS, 30, 20, 0.1, 30),
        # 0.15 s to either side of 1.15 s.
        (TWO_SPEEDS, 2, 20, 0.1305, 6),
    ],
)
def test_measures_on_until_the_median_is_known_well_enough(
    run, seconds, steps_asked, max_steps, precision, count
):
    effort = Effort(WARM_UP, steps_asked, max_steps, precision)
    samples, ran, _ = run(seconds, effort)
    assert (len(samples), ran) == (count, CHECKED + WARM_UP + count)


def traced(*names):
    metadata = RunMetadata()
    metadata.step_stats.dev_stats.add().node_stats.extend(
        [NodeExecStats(node_name=name) for name in names]
    )
    return metadata


def test_results_that_no_trace_has_were_not_computed():
    driver.check_done(iter([traced("a"), traced("b:B")]).__next__, ["a", "b"])
    with pytest.raises(ValueError, match=r"1 of 2 results .* such as 'b'"):
        driver.check_done(lambda: traced("a", "c"), ["a", "b"])
