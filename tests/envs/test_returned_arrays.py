"""What an environment has returned is its caller's: it is not written again, nor shared."""

import copy
from itertools import combinations

import numpy as np
import pytest

from placeto.envs import DevicePlacementEnv
from tests.envs.side_by_side import arrays, assert_same, native, toys


def returned(env, actions):
    """Results of two episodes, each with a copy made when it was returned."""
    for seed in range(2):
        result = env.reset(seed=seed)
        yield result, copy.deepcopy(result)
        for _ in range(4):
            result = env.step(actions)
            yield result, copy.deepcopy(result)


@pytest.mark.parametrize("mode", [None, "NextStep", "SameStep"])
def test_returned_arrays_are_never_written_again_nor_shared(mode):
    if mode is None:
        env, actions = DevicePlacementEnv(**toys()), 1
        options = {"graph": "chain"}
    else:
        env, actions = native(3, mode, **toys()), np.array([1, 0, 1])
        options = {"graph": "chain", "reset_mask": np.array([True, False, True])}
    kept = list(returned(env, actions))
    env.action_masks()[:] = False
    env.reset(options=options)
    for result, then in kept:
        assert_same(result, then)
    every = [array for result, _ in kept for _, array in arrays(result)]
    assert len(every) >= 10 * 8
    for one, other in combinations(every, 2):
        assert not np.may_share_memory(one, other)


@pytest.mark.parametrize("mode", [None, "NextStep", "SameStep"])
def test_what_a_caller_writes_is_not_seen_again(mode):
    def make():
        return DevicePlacementEnv(**toys()) if mode is None else native(3, mode, **toys())

    env, twin = make(), make()
    actions = 1 if mode is None else np.array([1, 0, 1])
    for (result, _), (_, expected) in zip(
        returned(env, actions), returned(twin, actions), strict=True
    ):
        assert_same(result, expected)
        for _, array in arrays(result):
            array[...] = None if array.dtype == object else 1
