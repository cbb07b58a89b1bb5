import math

import pytest

from placeto import PlacetoError
from placeto.models.placeto_2019.settings import Placeto2019Config


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"updates": 0}, "updates is 0, expected a whole number from 1"),
        ({"episodes": 2.5}, "episodes is 2.5, expected a whole number from 1"),
        ({"seed": -1}, "seed is -1, expected a whole number from 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected more than 0"),
        ({"gradient_norm": math.inf}, "gradient_norm is inf, expected more than 0"),
        ({"baseline_decay": 1.0}, "baseline_decay is 1.0, expected 0 or more, below 1"),
        ({"keep": math.nan}, "keep is nan, expected a finite number"),
        ({"reward": "gain"}, "reward is 'gain', expected one of improvement, terminal"),
        ({"initial_placement": "best"}, "'best', expected one of first, random, expert"),
        ({"passing": "gat"}, "passing is 'gat', expected one of rounds, sweep, none"),
    ],
)
def test_settings_that_make_no_sense_are_errors(setting, says):
    with pytest.raises(PlacetoError) as error:
        Placeto2019Config(**setting)
    assert says in str(error.value)
