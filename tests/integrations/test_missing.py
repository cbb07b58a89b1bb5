import importlib
import sys

import pytest

from placeto import PlacetoError


@pytest.mark.parametrize(
    ("name", "needed", "extra"),
    [
        ("sb3", "stable_baselines3.common.torch_layers", "sb3"),
        ("rllib", "ray.rllib.core.columns", "ray"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(name, needed, extra, monkeypatch):
    # Of a package that is not there, nothing is; what is there is not loaded for this test.
    monkeypatch.setitem(sys.modules, needed.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"placeto.integrations.{name}", raising=False)
    with pytest.raises(PlacetoError, match=rf"pip install 'placeto\[{extra}\]'"):
        importlib.import_module(f"placeto.integrations.{name}")
