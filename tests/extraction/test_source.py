"""Sources as users write them."""

import subprocess
import sys

import pytest

from placeto.extraction.source import parse_source, take_options
from placeto.support.errors import PlacetoError


def test_parts_and_types_of_a_source() -> None:
    source = parse_source("keras:ResNet50?batch=8&learning_rate=0.5&optimizer=adam&flag=true")
    assert (source.scheme, source.target) == ("keras", "ResNet50")
    assert source.options == {"batch": 8, "learning_rate": 0.5, "optimizer": "adam", "flag": True}
    assert parse_source("folder/step.pb?fetch=a,b").options == {"fetch": "a,b"}
    assert parse_source("folder/step.pb").scheme == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "names nothing"),
        ("keras:", "names nothing"),
        (":x", "names nothing"),
        ("keras:A?batch", "'batch' is not of the form key=value"),
        ("keras:A?batch=", "'batch=' is not of the form key=value"),
        ("keras:A?batch=1&batch=2", "'batch' stands twice"),
    ],
)
def test_malformed_sources(text: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint):
        parse_source(text)


def test_a_whole_number_serves_where_a_fraction_is_asked() -> None:
    assert take_options(parse_source("zoo:m?rate=1"), {"rate": 0.1}) == {"rate": 1.0}


def test_tensorflow_is_imported_only_when_something_is_extracted() -> None:
    code = "import sys, placeto.extraction, placeto.zoo; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
