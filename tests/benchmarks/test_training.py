import pytest

from benchmarks.speed.training import PARTS, training_speed
from placeto.envs import generator
from placeto.models.placeto_2019.settings import Placeto2019Config


def test_every_part_of_an_update_is_timed():
    config = Placeto2019Config(episodes=2, rounds=1, width=4)
    found = training_speed(generator.diamond(), config, 0.01)
    assert found["shares"].keys() == {part for part, _, _ in PARTS} | {"other"}
    assert sum(found["shares"].values()) == pytest.approx(1)
    assert min(found["shares"].values()) > 0
    assert found["fastest"] >= found["steps_per_second"] > 0
