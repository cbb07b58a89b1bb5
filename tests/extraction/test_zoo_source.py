"""`zoo:` sources of either kind, and bundled graphs made from them."""

from pathlib import Path

import numpy as np
import pytest

from placeto.extraction import extract
from placeto.support.errors import PlacetoError
from tests.extraction.running import losses


@pytest.mark.parametrize(
    "source",
    [
        "zoo:nmt?layers=2&batch=3&length=3&hidden=8&learning_rate=2",
        "zoo:rnnlm?layers=2&batch=3&length=3&hidden=8&embedding=6",
        "zoo:transformer?layers=2&batch=3&length=4&hidden=8&heads=2&masked=2&learning_rate=0.02",
    ],
)
def test_a_saved_step_guesses_and_then_learns(tmp_path: Path, source: str) -> None:
    path = tmp_path / "graph.json.gz"
    extract(f"{source}&vocabulary=20").save(path)
    first, *_, last = losses(path, 20, classes=2)
    assert first == pytest.approx(np.log(20), rel=0.1)
    assert last < 0.5 * first


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("zoo:resnet", r"no model 'resnet'; models: .*nmt, resnet50, rnnlm"),
        ("zoo:nasnet?size=medium", "size=medium is unknown; sizes: mobile, large"),
        ("zoo:resnet50?layers=3", "unknown option 'layers'.*; options: batch, classes, learning"),
        ("zoo:nmt?loss=mse", "unknown option 'loss'"),
        ("zoo:rnnlm?embedding=0", "rnnlm: embedding=0 must be at least 1"),
    ],
)
def test_sources_that_cannot_be_used(source: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint):
        extract(source)
