"""The benchmark models of the papers, as training steps in TensorFlow, and families of models."""

from collections.abc import Callable
from typing import Any

from placeto.zoo.enas_cnn import enas_cnn
from placeto.zoo.enas_rnn import enas_rnn
from placeto.zoo.nmt import nmt
from placeto.zoo.rnnlm import rnnlm
from placeto.zoo.transformer import transformer
from placeto.zoo.vision import inception_v3, nasnet, resnet50

# Functions that return a training step, a ConcreteFunction.
STEPS: dict[str, Callable[..., Any]] = {
    "enas_cnn": enas_cnn,
    "enas_rnn": enas_rnn,
    "nmt": nmt,
    "rnnlm": rnnlm,
    "transformer": transformer,
}
# Functions that return a keras.Model, to be trained on a batch.
KERAS_MODELS: dict[str, Callable[..., Any]] = {
    "inception_v3": inception_v3,
    "nasnet": nasnet,
    "resnet50": resnet50,
}
