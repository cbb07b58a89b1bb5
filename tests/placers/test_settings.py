"""Settings of placers: which there are, and that they reach what they are of."""

import json
from dataclasses import dataclass, fields
from typing import Literal

import pytest

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, place
from placeto.envs import generator
from placeto.placers import learned
from placeto.placers.configs import Configurable

LEARNED = ["colocrl", "hierarchical", "placeto-2019"]


@dataclass(frozen=True)
class Every:
    """A field of each kind."""

    sure: bool = False
    count: int = 3
    share: float = 0.5
    limit: int | None = None
    how: Literal["none", "all"] = "all"
    hidden: int = 7


EVERY = Configurable(Every(), fixed=("hidden",))


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 12)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sure", "true", True),
        ("sure", "false", False),
        ("count", "12", 12),
        ("share", "1e-3", 0.001),
        ("share", "2", 2.0),
        ("limit", "none", None),
        ("limit", "4", 4),
        ("how", "none", "none"),
    ],
)
def test_text_becomes_what_the_field_is(name, text, value):
    read = EVERY.read(name, text)
    assert (read, type(read)) == (value, type(value))
    assert getattr(EVERY.configured({name: read}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("sure", "yes", "sure is 'yes', expected true or false"),
        ("count", "2.5", "count is '2.5', expected a whole number"),
        ("share", "much", "share is 'much', expected a finite number"),
        ("share", "nan", "share is nan, expected a finite number"),
        ("limit", "no", "limit is 'no', expected a whole number or none"),
        ("how", "some", "how is 'some', expected none or all"),
        ("hidden", "1", "there is no setting 'hidden'; settings: sure, count, share, limit, how"),
    ],
)
def test_text_that_is_no_value_is_one_line(name, text, says):
    with pytest.raises(PlacetoError) as error:
        EVERY.configured({name: EVERY.read(name, text)})
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("etf", {"rounds": 2}, "etf has no settings; placers with settings: "),
        ("annealing", {"policy": "placeto"}, "'policy'; settings: max_eval"),
        ("annealing", {"exchanges": -1}, "exchanges is -1, expected 0 or more"),
        ("placeto-2019", {"rounds": 0}, "rounds is 0, expected a whole number from 1"),
        ("placeto-2019", {"passing": "gat"}, "passing is 'gat', expected rounds or sweep or none"),
        ("colocrl", {"passing": "none"}, "there is no setting 'passing'; settings: episodes"),
        *[(method, {"updates": 3}, "there is no setting 'updates'") for method in LEARNED],
        *[(method, {"seed": 3}, "there is no setting 'seed'") for method in LEARNED],
        *[(method, {"checkpoint_every": 3}, "'checkpoint_every'") for method in LEARNED],
    ],
)
def test_what_cannot_be_set_is_one_line(method, settings, says):
    with pytest.raises(PlacetoError) as error:
        place(generator.fork(), method, settings=settings)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("colocrl", {"width": 5, "algorithm": "ppo"}),
        ("hierarchical", {"clusters": 2, "learning_rate": 1e-4}),
        ("placeto-2019", {"passing": "none", "pooling": "all", "reward": "terminal"}),
        ("placeto-2019", {"traversal": "random", "sweeps": 2, "algorithm": "ppo"}),
    ],
)
def test_settings_reach_the_training(method, settings, monkeypatch):
    configs = []

    def trainer(problems, config, *others, original=learned.Trainer, **keywords):
        configs.append(config)
        return original(problems, config, *others, **keywords)

    monkeypatch.setattr(learned, "Trainer", trainer)
    # Of fewer groups some placers train in another way than they are configured.
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 64)
    place(problem, method, budget_seconds=1e-9)
    place(problem, method, budget_seconds=1e-9, settings=settings)
    default, changed = configs
    assert default.seed == changed.seed
    differing = {
        field.name: getattr(changed, field.name)
        for field in fields(default)
        if getattr(changed, field.name) != getattr(default, field.name)
    }
    assert differing == settings


def test_a_placement_tells_of_its_settings(nmt, tmp_path):
    plain = place(nmt, "annealing", settings={"max_evaluations": 20})
    other = place(nmt, "annealing", settings={"max_evaluations": 20, "exchanges": 0})
    assert plain.devices.tolist() == other.devices.tolist()
    assert other.settings == {"max_evaluations": 20, "exchanges": 0}
    assert plain != other
    other.save(tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["settings"] == other.settings
    assert place(nmt, "etf").settings == {}
