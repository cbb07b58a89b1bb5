"""`zoo:` sources of either kind, and bundled graphs made from them."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from placeto.extraction import bundled, extract, zoo_source
from placeto.graph import load_graph
from placeto.support import bundle
from placeto.support.errors import PlacetoError
from tests.extraction.running import losses
from tests.extraction.training_steps import tiny


def test_a_keras_model_takes_its_own_options_and_those_of_its_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(zoo_source.KERAS_MODELS, "tiny", tiny)
    graph = extract("zoo:tiny?filters=7&batch=3&optimizer=sgd").graph
    assert graph.name == "tiny"
    assert graph.meta["run"]["inputs"][0]["shape"] == [3, 8, 8, 3]
    weights = 3 * 3 * 3 * 7 + 6 * 6 * 7 * 5 + 5
    assert graph.param_bytes.sum() == 4 * weights + 12


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
        ("zoo:resnet", r"no model 'resnet' \(did you mean resnet50.*nmt, resnet50, rnnlm"),
        ("zoo:nasnet?size=medium", "size=medium is unknown; sizes: mobile, large"),
        ("zoo:resnet50?layers=3", "unknown option 'layers'.*; options: batch, classes, learning"),
        ("zoo:nmt?loss=mse", "unknown option 'loss'"),
        ("zoo:rnnlm?embedding=0", "rnnlm: embedding=0 must be at least 1"),
    ],
)
def test_sources_that_cannot_be_used(source: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint):
        extract(source)


def test_one_bundled_graph_is_made_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "zoo:rnnlm?layers=1&batch=2&length=2&hidden=3&embedding=2&vocabulary=5"
    monkeypatch.setattr(bundled, "SOURCES", {"small": source, "other": "zoo:rnnlm"})
    monkeypatch.setitem(bundle.FOLDERS, "graphs", tmp_path)
    assert bundled.main(["small"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "small.graphdef.gz",
        "small.json.gz",
    ]
    assert load_graph(tmp_path / "small.json.gz").name == "small"
    document = json.loads(gzip.decompress((tmp_path / "small.json.gz").read_bytes()))
    assert document["meta"]["source"] == source
    capsys.readouterr()
    assert bundled.main(["smal"]) == 2
    assert capsys.readouterr().err == "no bundled graph 'smal'; there are small, other\n"
