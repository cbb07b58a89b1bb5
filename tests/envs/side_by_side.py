"""The native vector environment and Gymnasium's, made alike and compared."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from placeto.envs import generator


def toys():
    """Arguments for graphs of four and six groups, one of which may only be on device 1."""
    problems = [generator.chain(), generator.diamond(), generator.fork()]
    return {
        "graph": [problem.graph for problem in problems],
        "cluster": problems[0].cluster,
        "grouping": "none",
        "pins": {2: 1},
    }


def native(num_envs, mode=AutoresetMode.NEXT_STEP, **options):
    return gym.make_vec("DevicePlacement-v0", num_envs, autoreset_mode=mode, **options)


def synchronous(num_envs, mode=AutoresetMode.NEXT_STEP, **options):
    return gym.make_vec(
        "DevicePlacement-v0",
        num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )


def assert_same(found, expected, where="result"):
    """Equal in types, shapes and every bit, all the way down."""
    if isinstance(expected, dict):
        assert set(found) == set(expected), where
        for key, value in expected.items():
            assert_same(found[key], value, f"{where}[{key!r}]")
    elif (isinstance(expected, np.ndarray) and expected.dtype == object) or type(expected) is tuple:
        assert type(found) is type(expected), where
        assert len(found) == len(expected), where
        for row, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{row}]")
    else:
        assert type(found) is type(expected), where
        if isinstance(expected, np.ndarray | np.generic):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), where
            assert found.tobytes() == expected.tobytes(), where
        else:
            assert found == expected, where


def arrays(result, where="result"):
    """Every array in a result, with what leads to it."""
    if isinstance(result, np.ndarray) and result.dtype != object:
        yield where, result
    elif isinstance(result, dict):
        for key, value in result.items():
            yield from arrays(value, f"{where}[{key!r}]")
    elif isinstance(result, tuple | np.ndarray):
        if isinstance(result, np.ndarray):
            yield where, result
        for row, value in enumerate(result):
            yield from arrays(value, f"{where}[{row}]")
