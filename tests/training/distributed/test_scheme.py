"""What goes together, and what does not."""

import pytest

from placeto import PlacetoError
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.placeto.settings import PlacetoConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.training.distributed import Scheme


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"workers": 0}, "workers is 0, expected a whole number from 1"),
        ({"controllers": -1}, "controllers is -1, expected a whole number from 1"),
        ({"mode": "chaotic"}, "mode is 'chaotic', expected one of synchronous, asynchronous"),
        ({"evaluator": "guess"}, "evaluator is 'guess', expected one of simulate, measure"),
        ({"controllers": 2}, "controllers is 2, but synchronous training has one"),
    ],
)
def test_settings_that_are_none(settings, says):
    with pytest.raises(PlacetoError, match=says):
        Scheme(**settings)


@pytest.mark.parametrize(
    ("scheme", "config", "says"),
    [
        (Scheme(3), Placeto2019Config(episodes=2), "workers is 3, but an update has 2 episodes to"),
        (
            Scheme(1, "asynchronous", 2),
            PlacetoConfig(algorithm="reinforce"),
            "placeto imitates a search before it learns",
        ),
        (
            Scheme(1, "asynchronous", 2),
            ColocRLConfig(algorithm="ppo"),
            "algorithm ppo takes several gradient steps from one policy",
        ),
        (
            Scheme(1, evaluator="measure"),
            PlacetoConfig(),
            "cannot be trained on measured step times",
        ),
    ],
)
def test_agents_that_cannot_be_trained_so(scheme, config, says):
    with pytest.raises(PlacetoError, match=says):
        scheme.check(config)


def test_what_the_result_does_not_depend_on_is_not_in_a_runs_name():
    assert Scheme(1).document() == Scheme(8, address="auto").document() == {}
    assert Scheme(2, "asynchronous", 3).document() == {
        "scheme": {"mode": "asynchronous", "controllers": 3}
    }
    assert Scheme(evaluator="measure").document() == {"scheme": {"evaluator": "measure"}}
