"""From a loss to an update, on a loss whose gradient is known."""

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the zoo needs placeto[tensorflow]")

from placeto.extraction.tracing import variables_kept
from placeto.zoo.training import training_function, uniform_variables
from tests.zoo.stepping import values


@pytest.mark.parametrize(("clip", "share"), [(0.0, 1.0), (2.5, 0.5), (10.0, 1.0)])
def test_gradients_are_clipped_by_their_global_norm(clip: float, share: float) -> None:
    import tensorflow as tf

    with variables_kept():
        variables = uniform_variables({"left": (1,), "right": (1,)}, 0.1)
        step = training_function(
            lambda factor: (
                tf.reduce_sum(3.0 * variables["left"] + 4.0 * variables["right"]) * factor
            ),
            variables,
            [tf.TensorSpec((), tf.float32, "factor")],
            "sgd",
            0.1,
            clip,
        )
        first = values(step)
        step(tf.constant(1.0))
        last = values(step)
    # A norm of 5, of 3 and 4.
    assert last["left"] - first["left"] == pytest.approx(-0.1 * 3 * share, rel=1e-5)
    assert last["right"] - first["right"] == pytest.approx(-0.1 * 4 * share, rel=1e-5)


def test_variables_start_the_same_every_time_and_each_as_its_name_says() -> None:
    shapes = {"kernel": (50, 40), "other/kernel": (50, 40), "bias": (3,), "norm/scale": (3,)}
    made = [uniform_variables(shapes, 0.04) for _ in range(2)]
    first, again = ({name: each.numpy() for name, each in group.items()} for group in made)
    assert all((first[name] == again[name]).all() for name in shapes)
    assert (first["kernel"] != first["other/kernel"]).all()
    assert 0.039 < np.abs(first["kernel"]).max() <= 0.04
    assert abs(first["kernel"].mean()) < 0.002
    assert first["bias"].tolist() == [0, 0, 0]
    assert first["norm/scale"].tolist() == [1, 1, 1]
