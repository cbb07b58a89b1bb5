"""Training steps of TensorFlow and Keras models as computation graphs with costs."""

from placeto.extraction.extract import extract
from placeto.extraction.result import Extraction

__all__ = ["Extraction", "extract"]
