"""Trained policies as files: what can be read, and what is said of what cannot."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from placeto import PlacetoError, bundle
from placeto.envs import generator
from placeto.features.groups import group_graph
from placeto.models.pairwise import PairwisePolicy, PairwiseShape
from placeto.models.policy import PlacetoPolicy, PolicyConfig
from placeto.models.scoring import embedding_of
from placeto.models.stored import bundled_policies, read_pairwise, read_policy
from placeto.training.checkpoint import save_policy
from tests.test_import import HEAVY, python

SHAPE = PairwiseShape(hidden=6, embedding=3, width=4, rounds=2)


@pytest.fixture
def folder(tmp_path):
    save_policy(tmp_path, PairwisePolicy(SHAPE), {"updates": 5})
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
    policy = PairwisePolicy(SHAPE)
    torch.nn.init.normal_(policy.last.weight)
    save_policy(tmp_path, policy, {"updates": 5})
    stored = read_pairwise(tmp_path)
    assert stored.source == str(tmp_path)
    assert stored.card["updates"] == 5
    assert stored.card["policy"] == SHAPE.to_document()
    state = policy.state_dict()
    assert stored.arrays.keys() == state.keys()
    for name, array in stored.arrays.items():
        assert array.dtype == np.float32
        assert array.tobytes() == state[name].numpy().tobytes()
    # The card's number of rounds is that of the network.
    graph = group_graph(generator.diamond())
    table = embedding_of(stored.arrays, graph, stored.card["policy"]["rounds"])
    np.testing.assert_allclose(table, policy.embed(graph).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_bundled_name_is_read_like_a_directory(folder, tmp_path_factory, monkeypatch):
    policies = tmp_path_factory.mktemp("policies")
    for suffix in (".json", ".safetensors"):
        shutil.copy(folder / f"policy{suffix}", policies / f"mine{suffix}")
    monkeypatch.setitem(bundle.FOLDERS, "policies", policies)
    assert bundled_policies() == ["mine"]
    assert read_pairwise("mine").arrays.keys() == read_pairwise(folder).arrays.keys()
    with pytest.raises(PlacetoError, match=r"no bundled policy; bundled policies: mine$"):
        read_policy("mime")


def test_a_folder_that_is_called_like_a_bundled_policy_is_named_by_its_path(folder, monkeypatch):
    here = folder.parent / "here"
    here.mkdir()
    shutil.copytree(folder, here / "pairwise")
    monkeypatch.chdir(here)
    shipped = read_policy("pairwise")
    assert shipped.card != read_policy("./pairwise").card
    assert read_policy("./pairwise").card["updates"] == 5
    shutil.rmtree(here / "pairwise")
    (here / "pairwise").mkdir()
    assert read_policy("pairwise").card == shipped.card


def test_every_bundled_policy_can_be_read():
    for name in bundled_policies():
        stored = read_policy(name)
        assert all(np.isfinite(array).all() for array in stored.arrays.values())


def refused(folder, match):
    with pytest.raises(PlacetoError, match=match) as error:
        read_pairwise(folder)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("name", ["nothing", "no/such/run", "x" * 5000, "../policies/pairwise"])
def test_no_such_policy(name):
    refused(name, "no run directory, and no bundled policy")


def test_a_directory_without_a_policy(tmp_path):
    refused(tmp_path, "policy.json: cannot be read")


def test_a_card_without_weights(folder):
    (folder / "policy.safetensors").unlink()
    refused(folder, "policy.safetensors: cannot be read")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"format": "placeto.pol', "not valid JSON"),
        ("[]", "a JSON object was expected"),
        ('{"format": "placeto.graph", "version": 1}', "format is 'placeto.graph'"),
        ('{"format": "placeto.policy", "version": 99}', "version 99"),
        ('{"format": "placeto.policy", "version": 1}', "no policy's shape"),
        ('{"format": "placeto.policy", "version": 1, "policy": 3}', "no policy's shape"),
    ],
)
def test_a_broken_card(folder, text, match):
    (folder / "policy.json").write_text(text)
    refused(folder, match)


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ({"kind": "pairwise"}, "hidden is None"),
        (SHAPE.to_document() | {"rounds": 10**9}, "rounds is 1000000000, expected .* to 4096"),
        (SHAPE.to_document() | {"rounds": True}, "rounds is True"),
        (SHAPE.to_document() | {"hidden": 9}, "another shape than its card's: first.bias"),
        (SHAPE.to_document() | {"hidden": "6"}, "hidden is '6'"),
        (SHAPE.to_document() | {"width": None}, "width is None"),
        (SHAPE.to_document() | {"rounds": "two"}, "rounds is 'two'"),
        (SHAPE.to_document() | {"rounds": 0}, "rounds is 0"),
        ({key: SHAPE.to_document()[key] for key in SHAPE.to_document() if key != "rounds"},
         "rounds is None"),
        (SHAPE.to_document() | {"embedding": -3}, "embedding is -3"),
    ],
)  # fmt: skip
def test_a_card_of_another_shape(folder, shape, match):
    change_card(folder, policy=shape)
    refused(folder, match)


@pytest.mark.parametrize("data", [b"", b"not weights", b"\xff" * 64])
def test_broken_weights(folder, data):
    (folder / "policy.safetensors").write_bytes(data)
    refused(folder, "policy.safetensors: not the weights of policy.json")


def test_weights_that_were_cut_off(folder):
    path = folder / "policy.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    refused(folder, "policy.safetensors: not the weights of policy.json")


def test_another_kind_of_policy(tmp_path):
    save_policy(tmp_path, PlacetoPolicy(PolicyConfig(num_devices=2)), {})
    assert read_policy(tmp_path).card["policy"]["num_devices"] == 2
    refused(tmp_path, "is not a pairwise policy")


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
        "import sys, numpy as np; from placeto.models.stored import read_pairwise;"
        "from placeto.models.scoring import embedding_of, score, weights_of;"
        "from placeto.features.groups import group_graph; from placeto.envs import generator;"
        "from placeto.features.pairs import GROUP_FEATURES, PAIR_FEATURES;"
        f"stored = read_pairwise({str(folder)!r});"
        "table = embedding_of(stored.arrays, group_graph(generator.diamond()), 2);"
        "x = np.zeros((2, PAIR_FEATURES), np.float32); y = np.zeros(GROUP_FEATURES, np.float32);"
        "logits = np.ones(2);"
        "score(weights_of(stored.arrays), x, y, table[0], np.ones(2, bool), logits);"
        "assert (logits == 0).all();"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python(code).split() == []
