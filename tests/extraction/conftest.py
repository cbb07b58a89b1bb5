"""Extraction is tested where TensorFlow is installed."""

import pytest

pytest.importorskip("tensorflow", reason="extraction needs placeto[tensorflow]")
