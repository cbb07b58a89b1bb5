"""The network of sampled cells: its size, its work, its loss, the names of its parts."""

import random
import re

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the zoo needs placeto[tensorflow]")

from placeto.extraction import Extraction, extract
from placeto.extraction.tracing import variables_kept
from placeto.graph import ComputationGraph
from placeto.zoo.cells import INPUTS, OPERATIONS, Cell, loose_ends, sampled_cell
from placeto.zoo.enas_cnn import enas_cnn
from tests.extraction.macs import forward_macs
from tests.zoo.stepping import Arrays, values

# The reduction cell of this seed does every operation at half the size, and has a loose input.
SEED, CELLS, NODES, FILTERS, BATCH, IMAGE, CLASSES = 91, 4, 4, 4, 3, 8, 5
SIZES = {
    "seed": SEED,
    "cells": CELLS,
    "nodes": NODES,
    "filters": FILTERS,
    "batch": BATCH,
    "image": IMAGE,
    "classes": CLASSES,
}


def drawn_cells() -> tuple[Cell, Cell]:
    """The normal and the reduction cell."""
    rng = random.Random(SEED)
    return sampled_cell(NODES, rng), sampled_cell(NODES, rng)


@pytest.fixture(scope="module")
def extraction() -> Extraction:
    return extract("zoo:enas_cnn?" + "&".join(f"{key}={size}" for key, size in SIZES.items()))


@pytest.fixture(scope="module")
def graph(extraction: Extraction) -> ComputationGraph:
    return extraction.graph


@pytest.fixture(scope="module")
def plain() -> "Plain":
    """The plain network after its forward pass, and the loss of TensorFlow's on the same batch."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    images = rng.standard_normal((BATCH, IMAGE, IMAGE, 3)).astype(np.float32)
    labels = rng.integers(0, CLASSES, BATCH)
    with variables_kept():
        step = enas_cnn(**SIZES)
        variables = values(step)
        loss = float(step(tf.constant(images), tf.constant(labels, tf.int32)))
    network = Plain(variables)
    network.wanted_loss = loss
    network.loss = network.cross_entropy(images.astype(float), labels)
    return network


class Plain:
    """The network in numpy, in double precision, counting multiply-adds and variables."""

    wanted_loss: float
    loss: float

    def __init__(self, variables: Arrays) -> None:
        self.variables = variables
        self.used: list[str] = []
        self.macs = 0
        self.scope, self.made = "", 0

    def variable(self, kind: str) -> np.ndarray:
        name = f"{self.scope}/{self.made}/{kind}"
        self.made += 1
        self.used.append(name)
        return self.variables[name].astype(float)

    def enter(self, scope: str) -> None:
        self.scope, self.made = scope, 0

    def cross_entropy(self, images: np.ndarray, labels: np.ndarray) -> float:
        normal, reduction = drawn_cells()
        self.enter("stem")
        before = last = self.norm(self.conv(images, self.variable("kernel"), 1))
        width = FILTERS
        for number, (cell, reduces) in enumerate(
            [(normal, False), (reduction, True), (reduction, True), (normal, False)]
        ):
            width *= 1 + reduces
            before, last = last, self.cell(f"cell_{number}", cell, before, last, width, reduces)
        self.enter("head")
        rows = np.maximum(last, 0).mean(axis=(1, 2))
        logits = rows @ self.variable("kernel") + self.variable("bias")
        self.macs += rows.shape[0] * rows.shape[1] * CLASSES
        right = logits[np.arange(BATCH), labels]
        return float((np.log(np.exp(logits).sum(axis=1)) - right).mean())

    def cell(
        self, name: str, cell: Cell, before: np.ndarray, last: np.ndarray, width: int, reduces: bool
    ) -> np.ndarray:
        outputs = []
        for number, images in enumerate((before, last)):
            self.enter(f"{name}/input_{number}")
            outputs.append(self.fit(images, width, last.shape[1]))
        height = last.shape[1] // (1 + reduces)
        for number, node in enumerate(cell):
            parts = []
            for side, source, operation in zip(
                ("left", "right"), node.inputs, node.operations, strict=True
            ):
                self.enter(f"{name}/node_{number}/{side}")
                parts.append(self.operate(operation, outputs[source], width, height))
            outputs.append(parts[0] + parts[1])
        ends = []
        for end in loose_ends(cell):
            self.enter(f"{name}/output/from_{end}")
            ends.append(self.fit(outputs[end], width, height))
        return np.concatenate(ends, axis=3)

    def operate(self, operation: str, images: np.ndarray, width: int, height: int) -> np.ndarray:
        stride = images.shape[1] // height
        if operation == "identity":
            return self.fit(images, width, height)
        if operation == "max_pool":
            return windows(images, 3, stride, -np.inf).max(axis=(3, 4))
        if operation == "average_pool":
            return np.nanmean(windows(images, 3, stride, np.nan), axis=(3, 4))
        for step in (stride, 1):
            images = self.depthwise(np.maximum(images, 0), self.variable("depthwise"), step)
            images = self.norm(self.conv(images, self.variable("pointwise"), 1))
        return images

    def fit(self, images: np.ndarray, width: int, height: int) -> np.ndarray:
        if images.shape[1] == height and images.shape[3] == width:
            return images
        images = np.maximum(images, 0)
        if images.shape[1] == height:
            return self.norm(self.conv(images, self.variable("kernel"), 1))
        halves = (images[:, 0::2, 0::2], images[:, 1::2, 1::2])
        made = [self.conv(half, self.variable("kernel"), 1) for half in halves]
        return self.norm(np.concatenate(made, axis=3))

    def conv(self, images: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
        made = np.einsum("bhwijc,ijcf->bhwf", windows(images, len(kernel), stride, 0), kernel)
        self.macs += made.size * kernel[..., 0].size
        return made

    def depthwise(self, images: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
        made = np.einsum("bhwijc,ijcm->bhwc", windows(images, len(kernel), stride, 0), kernel)
        self.macs += made.size * kernel[:, :, 0, 0].size
        return made

    def norm(self, images: np.ndarray) -> np.ndarray:
        mean, variance = images.mean(axis=(0, 1, 2)), images.var(axis=(0, 1, 2))
        scaled = (images - mean) / np.sqrt(variance + 1e-5)
        return scaled * self.variable("scale") + self.variable("offset")


def windows(images: np.ndarray, size: int, stride: int, fill: float) -> np.ndarray:
    """(batch, height, width, size, size, channels) what each output pixel sees."""
    height = images.shape[1]
    out = -(-height // stride)
    missing = max((out - 1) * stride + size - height, 0)
    pad = (missing // 2, missing - missing // 2)
    padded = np.pad(images, ((0, 0), pad, pad, (0, 0)), constant_values=fill)
    rows = [
        [
            padded[:, i * stride : i * stride + size, j * stride : j * stride + size]
            for j in range(out)
        ]
        for i in range(out)
    ]
    return np.array([np.array(row) for row in rows]).transpose(2, 0, 1, 3, 4, 5)


def test_the_cells_have_every_operation_and_a_loose_input() -> None:
    _, reduction = drawn_cells()
    halved = {
        operation
        for node in reduction
        for source, operation in zip(node.inputs, node.operations, strict=True)
        if source < INPUTS
    }
    assert halved == set(OPERATIONS)
    assert loose_ends(reduction)[0] < INPUTS


def test_loss_is_that_of_a_plain_implementation(plain: Plain) -> None:
    assert plain.loss == pytest.approx(plain.wanted_loss, rel=1e-4)


def test_every_variable_is_used_once(plain: Plain) -> None:
    assert sorted(plain.used) == sorted(plain.variables)


def test_parameters_and_work(plain: Plain, graph: ComputationGraph) -> None:
    assert graph.param_bytes.sum() == sum(each.nbytes for each in plain.variables.values())
    assert forward_macs(graph) == plain.macs


def test_every_costly_op_says_which_part_it_belongs_to(graph: ComputationGraph) -> None:
    part = re.compile(
        r"^(gradient_tape/|ConstantFolding/|update/)*"
        r"(stem|head|cell_\d+/(input_\d|node_\d+|output))/|^clip/"
    )
    for name, seconds in zip(graph.op_names, graph.op_seconds["k80"], strict=True):
        assert seconds == 0 or part.match(name), name
    assert graph.meta["kind"] == "vision"
    assert graph.meta["warnings"] == []
