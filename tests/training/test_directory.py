import json

import numpy as np
import pytest
import torch

from placeto import PlacetoError
from placeto.envs import generator
from placeto.envs.features import num_node_features
from placeto.models.placeto_2019.network import Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.structure import structure
from placeto.training import load_policy, save_policy
from placeto.training.directory import RunDirectory

SHAPES = [
    Placeto2019Shape(num_devices=2, width=4, rounds=3, keep=0.25),
    Placeto2019Shape(num_devices=2, width=6, passing="sweep"),
    Placeto2019Shape(num_devices=2, width=4, passing="none", pooling="all"),
]


@pytest.mark.parametrize("config", SHAPES)
def test_a_policy_comes_back_as_it_was(tmp_path, config):
    policy = Placeto2019Policy(config)
    save_policy(tmp_path, policy, {"graphs": ["diamond"]})
    loaded = load_policy(str(tmp_path))
    assert loaded.config == config
    features = torch.rand(3, 6, num_node_features(2), generator=torch.manual_seed(0))
    current, graph = torch.tensor([0, 3, 5]), structure(generator.diamond())
    assert torch.equal(loaded(features, current, graph), policy(features, current, graph))
    assert json.loads((tmp_path / "policy.json").read_text())["graphs"] == ["diamond"]


def test_equal_policies_make_equal_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        torch.manual_seed(7)
        save_policy(tmp_path / name, Placeto2019Policy(SHAPES[0]), {})
    for name in ("policy.safetensors", "policy.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_every_cut_and_every_flipped_byte_of_a_resume_state_is_noticed(tmp_path):
    state = {"weights": torch.arange(4.0), "updates": 3, "best": [float("inf")]}
    folder = RunDirectory(tmp_path, {"training": {"checkpoint_every": 2}})
    folder.save(state, Placeto2019Policy(SHAPES[0]), {})
    loaded = folder.state()
    assert loaded is not None
    assert loaded["best"] == state["best"]
    assert torch.equal(loaded["weights"], state["weights"])
    path = tmp_path / "trainer.pt"
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in rng.integers(len(data), size=100):
        path.write_bytes(data[:length])
        with pytest.raises(PlacetoError, match=r"trainer.pt: broken resume state"):
            folder.state()
    silent = 0
    for place in rng.integers(len(data), size=200):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            found = folder.state()
        except PlacetoError:
            continue
        # Padding, dates and the like may change: what is stored may not.
        silent += 1
        assert found is not None
        assert torch.equal(found["weights"], state["weights"])
        assert found["updates"] == 3
    assert silent < 200
