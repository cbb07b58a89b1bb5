"""Trained policies as files: what can be read, and what is said of what cannot."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from placeto import PlacetoError
from placeto.envs import generator
from placeto.envs.features.groups import group_graph
from placeto.models.placeto.network import PlacetoPolicy
from placeto.models.placeto.scoring import embedding_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.models.placeto.stored import read_placeto
from placeto.models.stored import bundled_policies, read_policy, save_policy
from tests.test_import import HEAVY, python

SHAPE = PlacetoNetworkConfig(hidden=6, embedding=3, width=4, rounds=2, heads=2, rank=3)
CARD = {"kind": "placeto", **SHAPE.to_document()}


@pytest.fixture
def folder(tmp_path):
    save_policy(tmp_path, PlacetoPolicy(SHAPE), {"updates": 5})
    return tmp_path


def change_card(folder, **changes):
    path = folder / "policy.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_arrays(folder, change):
    path = folder / "policy.safetensors"
    arrays = load(path.read_bytes())
    change(arrays)
    path.write_bytes(save(arrays))


def test_what_was_saved_is_read_back(tmp_path):
    policy = PlacetoPolicy(SHAPE)
    torch.nn.init.normal_(policy.last.weight)
    save_policy(tmp_path, policy, {"updates": 5})
    stored = read_placeto(tmp_path)
    assert stored.source == str(tmp_path)
    assert stored.card["updates"] == 5
    assert stored.card["policy"] == CARD
    state = policy.state_dict()
    assert stored.arrays.keys() == state.keys()
    for name, array in stored.arrays.items():
        assert array.dtype == np.float32
        assert array.tobytes() == state[name].numpy().tobytes()
    # The card's number of rounds is that of the network.
    graph = group_graph(generator.diamond())
    table, _ = embedding_of(stored.arrays, graph, stored.shape(PlacetoNetworkConfig))
    expected = policy.embed(graph).table.detach()
    np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-5)


def test_every_bundled_policy_can_be_read():
    for name in bundled_policies():
        stored = read_policy(name)
        assert all(np.isfinite(array).all() for array in stored.arrays.values())


def refused(folder, match):
    with pytest.raises(PlacetoError, match=match) as error:
        read_placeto(folder)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ({"kind": "placeto"}, "hidden is None"),
        (CARD | {"rounds": 10**9}, "rounds is 1000000000, expected .* to 4096"),
        (CARD | {"rounds": True}, "rounds is True"),
        (CARD | {"hidden": 9}, "another shape than its card's: first.bias"),
        (CARD | {"hidden": "6"}, "hidden is '6'"),
        (CARD | {"width": None}, "width is None"),
        (CARD | {"rounds": "two"}, "rounds is 'two'"),
        (CARD | {"rounds": 0}, "rounds is 0"),
        (CARD | {"heads": 0}, "heads is 0"),
        (CARD | {"heads": 3}, "another shape than its card's: apart"),
        (CARD | {"rank": 2}, "another shape than its card's: key.bias"),
        (CARD | {"pooling": "none"}, "another shape than its card's: apart"),
        (CARD | {"pooling": "groups"}, "pooling is 'groups', expected one of devices, none"),
        ({key: CARD[key] for key in CARD if key != "rounds"},
         "rounds is None"),
        (CARD | {"embedding": -3}, "embedding is -3"),
    ],
)  # fmt: skip
def test_a_card_of_another_shape(folder, shape, match):
    change_card(folder, policy=shape)
    refused(folder, match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda arrays: arrays.pop("mix.bias"), "another shape than its card's: mix.bias"),
        (lambda arrays: arrays.update(more=np.zeros(1, np.float32)), "card's: more"),
        (
            lambda arrays: arrays.update({"last.weight": arrays["last.weight"].T.copy()}),
            "another shape than its card's: last.weight",
        ),
        (
            lambda arrays: arrays.update({"up.bias": arrays["up.bias"].astype(np.float64)}),
            "not finite 32-bit floats: up.bias",
        ),
        (lambda arrays: arrays["second.bias"].__setitem__(2, np.nan), "32-bit floats: second.bias"),
        (lambda arrays: arrays["enter.weight"].__setitem__((0, 0), np.inf), "32-bit floats: ent"),
    ],
)
def test_arrays_that_do_not_fit(folder, change, match):
    change_arrays(folder, change)
    refused(folder, match)


def test_reading_and_scoring_load_no_framework(folder):
    code = (
        "import sys, numpy as np; from placeto.models.placeto.stored import read_placeto;"
        "from placeto.models.placeto.scoring import embedding_of, score, weights_of;"
        "from placeto.envs.features.groups import group_graph; from placeto.envs import generator;"
        "from placeto.envs.features.pairs import GROUP_FEATURES;"
        f"stored = read_placeto({str(folder)!r});"
        "from placeto.models.placeto.settings import PlacetoNetworkConfig;"
        "config = stored.shape(PlacetoNetworkConfig);"
        "table, _ = embedding_of(stored.arrays, group_graph(generator.diamond()), config);"
        "x = np.zeros((2, config.pair_columns), np.float32);"
        "y = np.zeros(GROUP_FEATURES, np.float32);"
        "from tests.compiled import from_python; logits = np.ones(2);"
        "weights = weights_of(stored.arrays, config);"
        "from_python(score)(weights, x, y, table[0], np.ones(2, bool), logits);"
        "assert (logits == 0).all();"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python(code).split() == []
